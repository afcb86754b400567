"""`make bench-runtime`: what it costs to follow 5,000 pods and 5,000 nodes, beside json and dicts.

Each way runs in a process of its own, so that memory is honest, and is fed by a third. Exits with 1
when a budget is broken. A budget of time counts as kept on a slow or busy machine when coil needs at
most `SLOW_RATIO` of what the baseline needs in the same run.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.runtime.measuring import Result

COUNT = 5000
SLOW_RATIO = 0.8
SECONDS = 120
"""Most that one measurement may take."""


BROKEN = "BROKEN"


class Budget(msgspec.Struct, frozen=True):
    """A figure, how to print it, and its limit."""

    text: str
    figure: str
    unit: str
    limit: float | None = None
    relative: bool = False


BUDGETS = [
    Budget("first sync", "sync_cpu", "CPU-s", 0.5, relative=True),
    Budget("memory after it, above the empty process", "memory_mb", "MB", 100),
    Budget("5,000 changes", "storm_cpu", "CPU-s", 0.5, relative=True),
    Budget("5,000 changes, elapsed", "storm_wall", "s"),
    Budget("passes for them", "passes", "", 50),
    Budget("loop lag p99 meanwhile, own work", "lag_p99_ms", "ms", 20),
    Budget("memory after them", "storm_memory_mb", "MB", 100),
    Budget("the empty process", "empty_mb", "MB"),
]


@contextmanager
def feed(count: int) -> Iterator[tuple[str, int]]:
    """A server process; gives its URL and the mean size of its objects."""
    command = [sys.executable, "-m", "benchmarks.runtime.feed", str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port, size = process.stdout.readline().split()
        try:
            yield f"http://127.0.0.1:{port}", int(size)
        finally:
            process.kill()


def measure(module: str, count: int) -> Result:
    """Run one way of following, alone with a fresh server."""
    with feed(count) as (url, _):
        command = [sys.executable, "-m", f"benchmarks.runtime.{module}", url, str(count)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=SECONDS)
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Result)


def verdict(budget: Budget, coil: Result, baseline: Result) -> str:
    """Whether coil keeps a budget."""
    value, beside = getattr(coil, budget.figure), getattr(baseline, budget.figure)
    if budget.limit is None:
        return ""
    if value <= budget.limit:
        return "kept"
    return "kept by ratio" if budget.relative and value <= SLOW_RATIO * beside else BROKEN


def table(coil: Result, baseline: Result) -> Table:
    """Both ways side by side."""
    out = Table("", "coil", "json + dict", "ratio", "budget", "", title=f"{COUNT:,} pods and {COUNT:,} nodes")
    for budget in BUDGETS:
        value, beside = getattr(coil, budget.figure), getattr(baseline, budget.figure)
        limit = f"{budget.limit:g}" if budget.limit else ""
        text = f"{budget.text} ({budget.unit})" if budget.unit else budget.text
        ratio = f"{value / beside:.2f}" if beside else ""
        out.add_row(text, f"{value:.3g}", f"{beside:.3g}", ratio, limit, verdict(budget, coil, baseline))
    return out


def main() -> int:
    """Measure, print, judge."""
    baseline, coil = measure("with_dicts", COUNT), measure("with_coil", COUNT)
    Console().print(table(coil, baseline))
    return int(any(verdict(budget, coil, baseline) == BROKEN for budget in BUDGETS))


if __name__ == "__main__":
    sys.exit(main())
