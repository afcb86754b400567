"""`make bench-configuration CHANGES=20 WORKERS=4`: from a change of the Controller until each daemon has it.

Needs the lab with the operator (`make up`). Makes a cluster with a running job and changes `extraConf`, one
change after the other, with the rehearsal and without; see docs/configuration.md. Ends with 1 when a budget
is broken, a pod or the job was disturbed, or there was not one reconfigure for each change.
"""

import argparse
import secrets
import sys
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from lab.binaries import binary
from lab.cluster import KUBECONFIG
from tests.support.kubectl import Kubectl
from tests.support.live_config import (
    KIND,
    Timing,
    figures,
    reconfigures,
    runs,
    timed_change,
    wait_live,
)
from tests.support.slurm_cluster import SlurmCluster

BUDGETS_S = {"on": 8.0, "off": 5.0}
"""For the last slurmd, by whether configurations are rehearsed."""


@dataclass(frozen=True)
class Series:
    """Changes of one kind, and what they did beside their purpose.

    Attributes:
        rehearsal: on or off.
        timings: of each change.
        reconfigures: in the log of slurmctld.
        restarted: pods that were replaced, or containers of theirs started anew.
        job: state, number of restarts, and whether it is the same run as before.
    """

    rehearsal: str
    timings: list[Timing]
    reconfigures: int
    restarted: int
    job: tuple[str, str, bool]

    def row(self) -> tuple[str, ...]:
        """As printed."""
        state, restarts, same = self.job
        return (
            self.rehearsal,
            figures([timing.controller for timing in self.timings]),
            figures([timing.everywhere for timing in self.timings]),
            f"{self.reconfigures} for {len(self.timings)}",
            str(self.restarted),
            f"{state}, Restarts={restarts}{'' if same else ', begun anew'}",
        )

    def complaints(self) -> list[str]:
        """What is not as it has to be."""
        worst = max(timing.everywhere for timing in self.timings)
        budget = BUDGETS_S[self.rehearsal]
        found = {
            f"a change took {worst:.1f} s, more than {budget:g} s": worst > budget,
            f"{self.reconfigures} reconfigures for {len(self.timings)} changes": self.reconfigures
            != len(self.timings),
            f"{self.restarted} pods were replaced or restarted": self.restarted > 0,
            f"the job is {self.job}": self.job != ("RUNNING", "0", True),
        }
        return [f"rehearsal {self.rehearsal}: {what}" for what, wrong in found.items() if wrong]


def main() -> None:
    """Run both series and print a table."""
    parser = argparse.ArgumentParser(prog="bench-configuration", description=__doc__)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--workers", type=int, default=4)
    options = parser.parse_args()
    table = Table(
        "rehearsal", "slurmctld shows it (median, worst)", "each slurmd (median, worst)",
        "reconfigures", "pods restarted", "job",
    )  # fmt: skip
    series = measure(options.workers, options.changes)
    for each in series:
        table.add_row(*each.row())
    Console(width=120).print(table)
    complaints = [complaint for each in series for complaint in each.complaints()]
    sys.exit("\n".join(complaints) if complaints else 0)


def measure(workers: int, changes: int) -> list[Series]:
    """Both series on one cluster, under one job."""
    kubectl = Kubectl(str(binary("kubectl")), str(KUBECONFIG))
    cluster = SlurmCluster(kubectl, f"bench-{secrets.token_hex(3)}")
    try:
        cluster.create(replicas=workers)
        cluster.wait_idle(workers)
        job = cluster.submit("sleep 3600", f"--nodes={workers}")
        cluster.wait_job(job, "RUNNING")
        return [one_series(cluster, workers, job, rehearsal, changes) for rehearsal in BUDGETS_S]
    finally:
        cluster.delete()


def one_series(cluster: SlurmCluster, workers: int, job: int, rehearsal: str, changes: int) -> Series:
    """So many changes, each when the one before is live everywhere."""
    cluster.kubectl.run(
        "annotate", "--overwrite", KIND, cluster.name, "--namespace", cluster.name,
        f"slinky.slurm.net/rehearsal={rehearsal}",
    )  # fmt: skip
    wait_live(cluster, workers)
    pods, began, told = runs(cluster), cluster.job(job)["StartTime"], reconfigures(cluster)
    first = 5000 if rehearsal == "on" else 6000
    timings: list[Timing] = []
    for number in range(changes):
        timings.append(timed_change(cluster, "MaxJobCount", first + number))
        print(f"rehearsal {rehearsal}, change {number + 1}: {timings[-1]}", flush=True)
        wait_live(cluster, workers)
    after, found = runs(cluster), cluster.job(job)
    return Series(
        rehearsal=rehearsal,
        timings=timings,
        reconfigures=reconfigures(cluster) - told,
        restarted=sum(after.get(uid) != restarts for uid, restarts in pods.items()),
        job=(found["JobState"], found["Restarts"], found["StartTime"] == began),
    )


if __name__ == "__main__":
    main()
