"""One moment of a Slurm cluster: all nodes, and the jobs on them. Pure.

What a view claims it positively knows (invariant I2). A node in it was read from slurmctld; that a node is
missing means something only when the view is `complete`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from coil.slurm.demand import Demand, Wanted
from coil.slurm.wire import SlurmJob, SlurmNode
from coil.support.hostlist import HostlistError, expand


class JobIndex(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs that hold nodes, by node, and the nodes wanted. Each job's hostlist is expanded once."""

    by_node: Mapping[str, tuple[SlurmJob, ...]]
    deadlines: Mapping[str, int]
    demand: Mapping[str, Wanted]
    doubts: tuple[str, ...] = ()


class ClusterView(msgspec.Struct, frozen=True, kw_only=True):
    """All that slurmctld said in one read.

    `observed_at` is when the read began (Unix seconds, this machine's clock). Doubts say why something may
    be missing: with a doubt about nodes, a node that is not there may exist; with one about jobs, a node
    without jobs may have some.
    """

    nodes: Mapping[str, SlurmNode]
    jobs_by_node: Mapping[str, tuple[SlurmJob, ...]]
    deadlines: Mapping[str, int]
    observed_at: float
    demand: Mapping[str, Wanted] = {}
    """Nodes that jobs hold and want, by partition; only partitions with such jobs are in it."""
    node_doubts: tuple[str, ...] = ()
    job_doubts: tuple[str, ...] = ()
    vanished: str = ""
    """Half of the nodes went at once (`loss.LossGuard`), as node doubts say too."""

    @property
    def complete(self) -> bool:
        """Whether all nodes and all jobs were read, so that what is missing does not exist."""
        return not self.node_doubts and not self.job_doubts

    def absent(self, name: str) -> bool:
        """Slurm positively has no such node."""
        return not self.node_doubts and name not in self.nodes

    def idle_and_drained(self, name: str) -> bool:
        """Slurm has positively said that the node takes no work and that no job is on it (invariant I1).

        Both witnesses count, the node's state and the list of jobs: a state that this version of coil does
        not know as busy must not cost a job.
        """
        node = self.nodes.get(name)
        free = not self.job_doubts and name not in self.jobs_by_node
        return node is not None and node.drained and free

    def deadline(self, name: str) -> int | None:
        """When the last of the running jobs on the node ends (Unix seconds); None without any."""
        return self.deadlines.get(name)


def index_jobs(jobs: Iterable[SlurmJob], doubts: Iterable[str] = ()) -> JobIndex:
    """Sort the jobs that hold nodes by node; a job whose nodes cannot be read is a doubt."""
    by_node: defaultdict[str, list[SlurmJob]] = defaultdict(list)
    deadlines: dict[str, int] = {}
    demand = Demand()
    told = list(doubts)
    for job in jobs:
        if not job.holds_nodes:
            demand.waiting(job)
            continue
        try:
            names = expand(job.nodes)
        except HostlistError as error:
            told.append(f"job {job.job_id}: {error}")
            continue
        demand.held(job, names)
        for name in names:
            by_node[name].append(job)
        if job.running:
            deadline = job.deadline
            deadlines.update((name, deadline) for name in names if deadlines.get(name, deadline) <= deadline)
    return JobIndex(
        by_node={name: tuple(held) for name, held in by_node.items()},
        deadlines=deadlines,
        demand=demand.by_partition(),
        doubts=tuple(told),
    )


def share_nodes(nodes: Iterable[SlurmNode], previous: Mapping[str, SlurmNode]) -> dict[str, SlurmNode]:
    """Index nodes by name, reusing the records that did not change: less memory, cheap comparison."""
    shared: dict[str, SlurmNode] = {}
    for node in nodes:
        known = previous.get(node.name)
        shared[node.name] = known if known is not None and known == node else node
    return shared


def changed_nodes(old: ClusterView | None, new: ClusterView) -> frozenset[str]:
    """Names of the nodes whose record, jobs or deadline differ, including those that came or went.

    All of them when doubts came or went, since that changes what may be concluded about each.
    """
    if old is None or (old.node_doubts, old.job_doubts) != (new.node_doubts, new.job_doubts):
        return frozenset(new.nodes) | frozenset(old.nodes if old else ())
    return frozenset().union(
        _differences(old.nodes, new.nodes),
        _differences(old.jobs_by_node, new.jobs_by_node),
        _differences(old.deadlines, new.deadlines),
    )


def _differences(old: Mapping[str, object], new: Mapping[str, object]) -> Iterable[str]:
    if old is new:
        return ()
    gone = old.keys() - new.keys()
    return [*gone, *(name for name, value in new.items() if old.get(name) != value)]
