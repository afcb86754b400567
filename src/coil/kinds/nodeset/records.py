"""What node records of Slurm must say about their pods (spec: nodeset 20, 21, 24.1)."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable

from coil.api import keys
from coil.kinds.nodeset.actions import SetComment, SetFeatures, SetTopology
from coil.kinds.nodeset.identity import encode_comment, pod_info
from coil.kinds.nodeset.marks import host_topology
from coil.kinds.nodeset.snapshot import Known, Snapshot, Worker
from coil.kinds.nodeset.starting import due_in
from coil.slurm.wire import SlurmNode


def plan_comments(snapshot: Snapshot, revived: Collection[str], now: float) -> tuple[list[SetComment], float]:
    """Comments to write, and the seconds after which those that wait are due.

    A node that is being revived keeps the old one, which is the proof that it moved. Each comment differs, so
    each is a call; it changes the node table, which is then read anew. So many are written in one go, not
    while workers are being started, and none is written again before Slurm has shown what was written.
    """
    if isinstance(snapshot.slurm, Known) and snapshot.slurm.observed_at <= snapshot.commented_at:
        return [], math.inf
    found = {
        worker.uid: SetComment(node=worker.slurm_name, comment=comment)
        for worker in snapshot.workers
        if (comment := _new_comment(snapshot, worker)) and worker.slurm_name not in revived
    }
    due = due_in(snapshot, found.keys(), now)
    return ([], due) if due > 0 else (list(found.values()), math.inf)


def _new_comment(snapshot: Snapshot, worker: Worker) -> str:
    if worker.record is None or not worker.speaks_for_record:
        return ""
    comment = encode_comment(pod_info(snapshot.nodeset, worker.pod))
    return "" if worker.record.comment == comment else comment


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
