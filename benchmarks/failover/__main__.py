"""`make bench-failover TIMES=10`: how long sbatch is refused after faults of slurmctld, and what is lost.

Needs the lab with the operator (`make up`). Each fault strikes under a stream of short jobs, one sbatch each
0.5 s; see docs/high-availability.md.
"""

import argparse
import secrets
import statistics
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from lab.binaries import binary
from lab.cluster import KUBECONFIG
from tests.support.failover import Fault, Outage, strike
from tests.support.ha_cluster import HaCluster
from tests.support.kubectl import Kubectl

CASES = {0: (Fault.DELETE, Fault.KILL), 1: (Fault.DELETE, Fault.CUT, Fault.KILL), 2: (Fault.CUT,)}
"""Faults by number of backups: without any, a node that is cut off takes slurmctld with it."""


def main() -> None:
    """Run all cases and print a table."""
    parser = argparse.ArgumentParser(prog="bench-failover", description=__doc__)
    parser.add_argument("--times", type=int, default=1, help="how often each fault strikes")
    parser.add_argument(
        "--backups", type=int, choices=CASES, nargs="*", default=list(CASES), help="which cases"
    )
    given = parser.parse_args()
    table = Table(
        "backups", "fault", "times", "accepted again after (median, worst)",
        "without acceptance at hand-back (median, worst)", "sbatch failed", "jobs lost",
    )  # fmt: skip
    for backups in given.backups:
        for fault, outages in measure(backups, CASES[backups], given.times).items():
            table.add_row(str(backups), fault.value, *figures(outages))
    Console().print(table)


def measure(backups: int, faults: Sequence[Fault], times: int) -> dict[Fault, list[Outage]]:
    """Strike one new cluster with each fault, so many times."""
    kubectl = Kubectl(str(binary("kubectl")), str(KUBECONFIG))
    cluster = HaCluster(kubectl, f"bench-{secrets.token_hex(3)}", backups=backups)
    found: dict[Fault, list[Outage]] = {fault: [] for fault in faults}
    try:
        two_operators(kubectl)
        cluster.create(replicas=2)
        cluster.wait_idle(2)
        for fault in faults:
            for _ in range(times):
                found[fault].append(strike(cluster, fault))
                print(f"{backups} backups, {fault.value}: {found[fault][-1]}", flush=True)
    finally:
        cluster.delete()
    return found


def two_operators(kubectl: Kubectl) -> None:
    """One on each node that may be cut off: it is the operator that leads clients to a backup."""
    operator = ("--namespace", "slinky", "deployment/slurm-operator")
    kubectl.run("scale", "--replicas=2", *operator)
    kubectl.run("rollout", "status", "--timeout=90s", *operator)


def figures(outages: Sequence[Outage]) -> tuple[str, ...]:
    """The columns of one fault."""
    accepted = sum(len(outage.fates.accepted) for outage in outages)
    lost = sum(len(outage.fates.lost) for outage in outages)
    failed = sum(len(outage.fates.refused) for outage in outages)
    back = [outage.hand_back for outage in outages if outage.hand_back is not None]
    again = middle_and_worst([outage.seconds for outage in outages])
    return (str(len(outages)), again, middle_and_worst(back), str(failed), f"{lost} of {accepted}")


def middle_and_worst(seconds: Sequence[float]) -> str:
    """Median and worst, as text."""
    return f"{statistics.median(seconds):.1f} s, {max(seconds):.1f} s" if seconds else "-"


if __name__ == "__main__":
    main()
