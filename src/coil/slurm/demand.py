"""How many nodes the jobs of each partition want: what an autoscaler has to know. Pure.

slurmctld's own metrics cannot say it (ADR 80): they count pending jobs, those that no node helps included,
and know the largest of them, but not how many nodes they want together.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from coil.slurm.wire import SlurmJob

NODES_HELP = frozenset(
    {
        *("None", "Priority", "Resources", "ReqNodeNotAvail"),
        # A partition without nodes, and a job that wants more nodes than its partition has now.
        *("PartitionConfig", "PartitionNodeLimit"),
    }
)
"""Reasons of pending jobs that more nodes may start: no hold, dependency, begin time, limit or licence."""

_TASKS = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """Nodes of one partition: those that jobs hold, and those that pending jobs want beside them."""

    held: int = 0
    pending: int = 0

    @property
    def nodes(self) -> int:
        """Both."""
        return self.held + self.pending


class Demand:
    """Counts while a list of jobs is read."""

    def __init__(self) -> None:
        self._held: defaultdict[str, set[str]] = defaultdict(set)
        self._pending: defaultdict[str, int] = defaultdict(int)

    def held(self, job: SlurmJob, nodes: Sequence[str]) -> None:
        """The job holds these nodes; a node that several jobs share counts once."""
        self._held[job.partition].update(nodes)

    def waiting(self, job: SlurmJob) -> None:
        """Count a job without nodes, if it is pending and nodes help.

        A job that takes any of several partitions counts in each: none of them may starve it.
        """
        if "PENDING" in job.state and job.state_reason in NODES_HELP:
            for partition in job.partition.split(","):
                self._pending[partition] += job.node_count.number * tasks(job)

    def by_partition(self) -> Mapping[str, Wanted]:
        """What was counted."""
        return {
            name: Wanted(held=len(self._held.get(name, ())), pending=self._pending.get(name, 0))
            for name in self._held.keys() | self._pending.keys()
        }


def tasks(job: SlurmJob) -> int:
    """How many tasks of a job array one record stands for, no more than may run at once; 1 for other jobs.

    slurmctld shortens long lists of single tasks; then it is a lower bound that grows as tasks start.
    """
    count = 0
    for found in _TASKS.finditer(job.array_tasks.partition("%")[0]):
        first, last, step = found.groups()
        count += 1 + (int(last or first) - int(first)) // int(step or 1)
    return max(1, min(count, job.array_limit.number or count))
