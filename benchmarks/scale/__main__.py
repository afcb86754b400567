"""`make bench-scale N=1000`: a NodeSet at size, beside a bare loop that only makes and deletes pods.

Exits with 1 when a budget is broken. Read the ratios: the seconds are those of this machine.
"""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from benchmarks.scale.phases import Plan, Results, measure
from benchmarks.scale.verdicts import Verdict, costs, judged, quantile, verdicts
from coil.support import log

CONSOLE = Console(width=140)


def main(
    count: Annotated[int, typer.Argument(help="workers, machines and Slurm nodes")] = 1_000,
    json_file: Annotated[Path | None, typer.Option("--json", help="where the figures go")] = None,
    steady: Annotated[float, typer.Option(help="seconds during which nothing changes")] = 60.0,
    changes: Annotated[int, typer.Option(help="state changes in Slurm to follow")] = 50,
    roll: Annotated[bool, typer.Option(help="replace all workers by new ones")] = True,
) -> None:
    """Measure an operator: coil, or the command line in the environment variable OPERATOR."""
    log.configure(log.LogSettings(level="error"))
    command = os.environ.get("OPERATOR", "")
    plan = Plan(count=count, operator=command, steady_s=steady, changes=changes, roll=roll)
    results = asyncio.run(_measured(plan))
    found = list(verdicts(results))
    if json_file is not None:
        json_file.write_bytes(_document(results, found))
    CONSOLE.print(costs(results))
    if times := results.latencies_s:
        half, most = (quantile(times, part) for part in (0.5, 0.99))
        print(f"Slurm state to pod condition: p50 {half:.2f} s, p99 {most:.2f} s, {len(times)} times")
    CONSOLE.print(judged(found))
    sys.exit(0 if all(one.kept for one in found) else 1)


async def _measured(plan: Plan) -> Results:
    """Run to the end; a termination signal takes everything down first."""
    begin, task = time.monotonic(), asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await measure(plan, lambda text: print(f"{time.monotonic() - begin:6.1f} s  {text}", flush=True))


def _document(results: Results, found: list[Verdict]) -> bytes:
    judged_ones = [{**msgspec.structs.asdict(one), "kept": one.kept} for one in found]
    text = msgspec.json.encode({"results": results, "verdicts": judged_ones})
    return msgspec.json.format(text, indent=1) + b"\n"


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    app()
