"""`make bench-failover TIMES=10`: how long sbatch is refused after faults of slurmctld, and what is lost.

Needs the lab with the operator (`make up`). Each fault strikes under a stream of short jobs, one sbatch each
0.5 s; see docs/high-availability.md. Each strike is recorded as a line of a file, from which the table is
made: a run that was broken off goes on where it ended.
"""

import argparse
import secrets
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from lab.binaries import binary
from lab.cluster import KUBECONFIG
from tests.support.failover import Fault, Outage, strike
from tests.support.ha_cluster import HaCluster
from tests.support.kubectl import Kubectl
from tests.support.operator import Operator

CASES = {0: (Fault.DELETE, Fault.KILL), 1: (Fault.DELETE, Fault.CUT, Fault.KILL), 2: (Fault.CUT,)}
"""Faults by number of backups: without any, a node that is cut off takes slurmctld with it."""
WIDTH = 150
KEPT = ("JobState", "Reason", "Restarts", "SubmitTime", "StartTime", "ExitCode")
"""What is told about a job that was lost, if Slurm knows it: a job number may have been given again."""


class Strike(msgspec.Struct, frozen=True, kw_only=True):
    """What one fault cost: times in seconds, numbers of jobs; `lost_ages` as in `Outage`."""

    backups: int
    fault: Fault
    seconds: float
    hand_back: float | None
    accepted: int
    refused: int
    lost_ages: list[float]
    repeated: int
    drained: int | None = None

    @classmethod
    def of(cls, backups: int, fault: Fault, outage: Outage) -> "Strike":
        """What an outage cost."""
        fates = outage.fates
        return cls(
            backups=backups,
            fault=fault,
            seconds=outage.seconds,
            hand_back=outage.hand_back,
            accepted=len(fates.accepted),
            refused=len(fates.refused),
            lost_ages=outage.lost_ages,
            repeated=len(fates.repeated),
            drained=len(outage.drained),
        )


def main() -> None:
    """Run all cases and print a table."""
    parser = argparse.ArgumentParser(prog="bench-failover", description=__doc__)
    parser.add_argument("--times", type=int, default=1, help="how often each fault strikes")
    parser.add_argument(
        "--backups", type=int, choices=CASES, nargs="*", default=list(CASES), help="which cases"
    )
    parser.add_argument(
        "--record", type=Path, default=Path("failover.jsonl"), help="one line for each strike"
    )
    given = parser.parse_args()
    for backups in given.backups:
        measure(backups, given.times, given.record)
    Console(width=WIDTH).print(table(recorded(given.record)))


def measure(backups: int, times: int, record: Path) -> None:
    """Strike one new cluster with each fault, until so many strikes of it are recorded."""
    done = [(each.backups, each.fault) for each in recorded(record)]
    missing = [
        fault for number in range(times) for fault in CASES[backups] if done.count((backups, fault)) <= number
    ]
    if not missing:
        return
    kubectl = Kubectl(str(binary("kubectl")), str(KUBECONFIG))
    # One on each node that may be cut off: it is the operator that leads clients to a backup.
    Operator(kubectl).scale(2)
    with HaCluster(kubectl, f"bench-{secrets.token_hex(3)}", backups=backups).running(workers=2) as cluster:
        for fault in missing:
            outage = strike(cluster, fault)
            print(f"{backups} backups, {fault.value}: {outage}", flush=True)
            for number in (int(answer.split()[-1]) for answer in outage.fates.lost_answers):
                job = cluster.job(number)
                print(f"  lost {number}: {[job.get(name) for name in KEPT]}", flush=True)
            with record.open("ab") as file:
                file.write(msgspec.json.encode(Strike.of(backups, fault, outage)) + b"\n")


def recorded(record: Path) -> list[Strike]:
    """The strikes of this run and those before."""
    lines = record.read_bytes().splitlines() if record.exists() else []
    return [msgspec.json.decode(line, type=Strike) for line in lines]


def table(strikes: Iterable[Strike]) -> Table:
    """Median and worst of each fault."""
    cases: dict[tuple[int, Fault], list[Strike]] = {}
    for each in strikes:
        cases.setdefault((each.backups, each.fault), []).append(each)
    made = Table(
        "backups", "fault", "times", "back: median, worst", "hand-back: median, worst", "failed", "lost",
        "lost, accepted later", "run twice", "nodes drained",
    )  # fmt: skip
    for (backups, fault), found in cases.items():
        made.add_row(str(backups), fault.value, *figures(found))
    return made


def figures(strikes: Sequence[Strike]) -> tuple[str, ...]:
    """The columns of one fault."""
    ages = [age for each in strikes for age in each.lost_ages]
    later = sum(age < 0 for age in ages)
    return (
        str(len(strikes)),
        middle_and_worst([each.seconds for each in strikes]),
        middle_and_worst([each.hand_back for each in strikes if each.hand_back is not None]),
        str(sum(each.refused for each in strikes)),
        f"{len(ages)} of {sum(each.accepted for each in strikes)}",
        str(later),
        str(sum(each.repeated for each in strikes)),
        str(sum(each.drained or 0 for each in strikes)),
    )


def middle_and_worst(seconds: Sequence[float]) -> str:
    """Median and worst, as text."""
    return f"{statistics.median(seconds):.1f} s, {max(seconds):.1f} s" if seconds else "-"


if __name__ == "__main__":
    main()
