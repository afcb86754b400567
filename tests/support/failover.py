"""Faults of slurmctld under a stream of short jobs, and what they cost."""

import signal
import time
from dataclasses import dataclass
from enum import Enum

from tests.support.ha_cluster import HaCluster
from tests.support.job_stream import Fates, JobStream
from tests.support.kubectl import wait_until


class Fault(Enum):
    """What befalls the active slurmctld."""

    KILL = "SIGKILL"
    DELETE = "pod deleted"
    CUT = "node cut off"


@dataclass(frozen=True)
class Outage:
    """One fault: when it struck and was mended (Unix seconds), and what became of the jobs.

    `drained` are nodes that Slurm drained: a slurmctld that forgot jobs gives their numbers again, and a node
    on which the job of that number still runs is drained as having a "Duplicate jobid".
    """

    moment: float
    fates: Fates
    mended: float | None = None
    drained: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Until jobs were accepted again; what follows when the fault is mended is not part of it."""
        return self.fates.back_after(self.moment, until=self.mended or float("inf"))

    @property
    def hand_back(self) -> float | None:
        """Longest time without an accepted job once a fault that has an end was mended."""
        return None if self.mended is None else self.fates.longest_gap(self.mended)

    @property
    def lost_ages(self) -> list[float]:
        """How long before the fault each lost job was accepted, in seconds; below 0 for later ones."""
        ended = {each.number: each.ended for each in self.fates.submissions}
        return [round(self.moment - ended[number], 1) for number in self.fates.lost]

    def __str__(self) -> str:
        fates = self.fates
        back = "" if self.hand_back is None else f", hand-back {self.hand_back:.1f} s"
        return (
            f"accepted again after {self.seconds:.1f} s{back}; {len(fates.accepted)} accepted, "
            f"{len(fates.refused)} failed, lost {fates.lost}, accepted {self.lost_ages} s before, "
            f"run twice {fates.repeated}, drained {self.drained}"
        )


def strike(cluster: HaCluster, fault: Fault, *, before: int = 20, patience: float = 45) -> Outage:
    """Let one fault befall the active slurmctld, wait until all is well again, and count.

    It strikes when `before` jobs were accepted. A job whose work is not done within `patience` seconds after
    the end of the stream is lost.
    """
    cluster.renew_restarted()
    cluster.wait_ready()
    [active] = cluster.labelled()
    stream = JobStream(cluster)
    stream.start()
    stream.wait_accepted(0, count=before)
    moment, mended = time.time(), None
    match fault:
        case Fault.KILL:
            cluster.signal(active, signal.SIGKILL)
        case Fault.DELETE:
            cluster.delete_pod(active)
        case Fault.CUT:
            with cluster.cut_off(active):
                stream.wait_accepted(moment, count=5, within=90)
                mended = time.time()
            _wait_active_again(cluster, active)
    stream.wait_accepted(time.time(), count=5, within=90)
    fates, drained = stream.stop(within=patience / 3), cluster.resume_drained()
    if fates.lost:  # or waiting for such a node
        fates = stream.stop(within=patience * 2 / 3)
    return Outage(moment, fates, mended, tuple(drained))


def _wait_active_again(cluster: HaCluster, pod: str) -> None:
    """Wait until the slurmctld that came back is ready, so that the hand-back is part of the record."""

    def again() -> bool:
        return cluster.labelled() == [pod] and cluster.is_ready(pod)

    wait_until(again, within=120, what=f"{pod} is active again")
