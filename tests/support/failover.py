"""Faults of slurmctld under a stream of short jobs, and what they cost."""

import signal
import time
from dataclasses import dataclass
from enum import Enum

from tests.support.ha_cluster import HaCluster
from tests.support.job_stream import Fates, JobStream


class Fault(Enum):
    """What befalls the active slurmctld."""

    KILL = "SIGKILL"
    DELETE = "pod deleted"
    CUT = "node cut off"


@dataclass(frozen=True)
class Outage:
    """One fault: when it struck (Unix seconds), and what became of the jobs."""

    moment: float
    fates: Fates

    @property
    def seconds(self) -> float:
        """Until jobs were accepted again."""
        return self.fates.back_after(self.moment)

    def __str__(self) -> str:
        fates = self.fates
        return (
            f"accepted again after {self.seconds:.1f} s; {len(fates.accepted)} accepted, "
            f"{len(fates.refused)} failed, lost {fates.lost}, run twice {fates.repeated}"
        )


def strike(cluster: HaCluster, fault: Fault) -> Outage:
    """Let one fault befall the active slurmctld, wait until all is well again, and count."""
    cluster.renew_restarted()
    cluster.wait_ready()
    [active] = cluster.labelled()
    stream = JobStream(cluster)
    stream.start()
    stream.wait_accepted(0, count=20)
    moment = time.time()
    match fault:
        case Fault.KILL:
            cluster.signal(active, signal.SIGKILL)
        case Fault.DELETE:
            cluster.delete_pod(active)
        case Fault.CUT:
            with cluster.cut_off(active):
                stream.wait_accepted(moment, count=5, within=90)
    stream.wait_accepted(time.time(), count=5, within=90)
    return Outage(moment, stream.stop())
