"""What node records of Slurm must say about their pods (spec: nodeset 20, 21, 24.1)."""

from collections import defaultdict
from collections.abc import Collection, Iterable

from coil.api import keys
from coil.kinds.nodeset.actions import SetComment, SetFeatures, SetTopology
from coil.kinds.nodeset.identity import encode_comment, pod_info
from coil.kinds.nodeset.marks import host_topology
from coil.kinds.nodeset.snapshot import Snapshot, Worker
from coil.slurm.wire import SlurmNode


def plan_comments(snapshot: Snapshot, revived: Collection[str]) -> list[SetComment]:
    """Comments to write. A node that is being revived keeps the old one, which is the proof that it moved."""
    found: list[SetComment] = []
    for worker in snapshot.workers:
        if worker.record is None or not worker.speaks_for_record or worker.slurm_name in revived:
            continue
        comment = encode_comment(pod_info(snapshot.nodeset, worker.pod))
        if worker.record.comment != comment:
            found.append(SetComment(node=worker.slurm_name, comment=comment))
    return found


def plan_topology(snapshot: Snapshot) -> list[SetTopology]:
    """Topology to set, one call for all nodes of one value; a flat cluster shows none and is told once."""
    nodes: defaultdict[str, list[str]] = defaultdict(list)
    for worker in snapshot.workers:
        wanted = host_topology(worker)
        if worker.record is None or not worker.speaks_for_record or wanted is None:
            continue
        shown = worker.record.topology
        if shown != wanted and snapshot.placed.get(worker.uid) != (wanted, shown):
            nodes[wanted].append(worker.slurm_name)
    return [SetTopology(nodes=tuple(names), topology=value) for value, names in nodes.items()]


def plan_features(workers: Iterable[Worker]) -> list[SetFeatures]:
    """Features to set, one call for all nodes that get the same ones."""
    nodes: defaultdict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for worker in workers:
        record = worker.record
        if record is None or worker.host is None or not worker.speaks_for_record:
            continue
        text = worker.host.metadata.annotations.get(keys.ANNOTATION_FEATURES, "")
        available = merge_features(record.features, text)
        active = merge_features(record.active_features, text)
        if _differs(record, available, active):
            nodes[available, active].append(worker.slurm_name)
    return [
        SetFeatures(nodes=tuple(names), features=available, active=active)
        for (available, active), names in nodes.items()
    ]


def merge_features(live: Iterable[str], annotation: str) -> tuple[str, ...]:
    """Features of others as they are, and those that the node's annotation names, prefixed as ours."""
    wanted = {keys.FEATURE_PREFIX + name for part in annotation.split(",") if (name := part.strip())}
    foreign = {name for part in live if (name := part.strip()) and not name.startswith(keys.FEATURE_PREFIX)}
    return tuple(sorted(foreign | wanted))


def _differs(record: SlurmNode, available: Iterable[str], active: Iterable[str]) -> bool:
    return set(record.features) != set(available) or set(record.active_features) != set(active)
