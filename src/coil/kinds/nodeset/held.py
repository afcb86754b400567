"""What others hold, remembered beyond the pod that shows it (invariants I3 and I12; docs/adr/0037).

A pod that is deleted takes with it what people said about its worker: their cordon, which is an annotation
of the pod, and, where its good-bye overwrites reasons (pods of the reference do), the reason of a drain in
Slurm. Both are written into an annotation of the NodeSet before such a pod is deleted: its successor is born
with the cordon, and the drain gets its reason back and is never undone.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from coil.api import keys
from coil.kinds.nodeset.actions import DeletePod, Drain, Remember
from coil.kinds.nodeset.drain import Cause, is_cordoned, own_cause
from coil.kinds.nodeset.ownership import APPENDED, is_of_machine
from coil.kinds.nodeset.snapshot import Held, Snapshot, Worker
from coil.slurm.wire import SlurmNode

_decoder = msgspec.json.Decoder(Held)


def read(annotations: Mapping[str, str]) -> Held:
    """What the annotation says; nothing when it is absent or somebody spoiled it."""
    try:
        return _decoder.decode(annotations.get(keys.ANNOTATION_HELD, "{}"))
    except (msgspec.DecodeError, msgspec.ValidationError):
        return Held()


def plan_memory(snapshot: Snapshot, deletions: Sequence[DeletePod]) -> list[Remember]:
    """Write down what these deletions would lose, and forget what has come back; nothing when all is so."""
    causes = {deletion.uid: deletion.cause for deletion in deletions}
    told, daemon = _told(snapshot, causes), snapshot.nodeset.daemon
    drained, cordoned = _with_reasons(snapshot, causes), _with_cordons(snapshot, causes)
    drains = {name: reason for name, reason in snapshot.held.drains.items() if name not in told}
    cordons = {at: uid for at, uid in snapshot.held.cordons.items() if not _is_settled(snapshot, at, uid)}
    wanted = Held(
        drains=drains | {w.slurm_name: w.record.reason for w in drained if w.record is not None},
        cordons=cordons | {place(w, daemon=daemon): w.uid for w in cordoned},
    )
    if wanted == snapshot.held:
        return []
    text = None if wanted == Held() else msgspec.json.encode(wanted, order="sorted").decode()
    pods = {worker.uid for worker in (*drained, *cordoned)} & causes.keys()
    return [Remember(annotation=text, pods=tuple(sorted(pods)))]


def plan_restores(snapshot: Snapshot) -> list[Drain]:
    """Give drains back the reasons that a good-bye overwrote."""
    nodes: defaultdict[str, list[str]] = defaultdict(list)
    for worker in snapshot.workers:
        reason = snapshot.held.drains.get(worker.slurm_name)
        record = worker.record
        if reason and record is not None and worker.speaks_for_record and is_overwritten(record):
            nodes[reason].append(worker.slurm_name)
    return [Drain(nodes=tuple(names), reason=reason) for reason, names in nodes.items()]


def place(worker: Worker, *, daemon: bool) -> str:
    """What a worker has in common with its successor: the name of the pod, or the Kubernetes node."""
    return (worker.pod.spec.node_name or worker.pod.pinned_node) if daemon else worker.name


def is_users(worker: Worker) -> bool:
    """Somebody else set this cordon: it has no cause that this operator knows."""
    return is_cordoned(worker) and own_cause(worker) is None


def is_out(record: SlurmNode) -> bool:
    """No new jobs start there, because somebody or something said so."""
    return record.drain or "DOWN" in record.state


def is_overwritten(record: SlurmNode) -> bool:
    """A node that is out with a reason of ours: when somebody held it before, a good-bye replaced hers."""
    return is_out(record) and record.ours and APPENDED not in record.reason


def _with_reasons(snapshot: Snapshot, leaving: Mapping[str, Cause | None]) -> list[Worker]:
    """Workers that go and whose Slurm nodes somebody holds."""
    return [
        worker
        for worker in snapshot.workers
        if (worker.uid in leaving or worker.terminating)
        and not worker.shared
        and worker.record is not None
        and is_out(worker.record)
        and not worker.record.ours
        and not is_of_machine(worker.record)
    ]


def _with_cordons(snapshot: Snapshot, leaving: Mapping[str, Cause | None]) -> list[Worker]:
    """Workers that a user cordoned and that are to be replaced, not removed."""
    removed = (Cause.SCALE_IN, Cause.SCALING_MODE)
    return [
        worker
        for worker in snapshot.workers
        if worker.uid in leaving and leaving[worker.uid] not in removed and is_users(worker)
    ]


def _told(snapshot: Snapshot, leaving: Mapping[str, Cause | None]) -> set[str]:
    """Nodes whose record needs no memory: in service again, or somebody's anew under a worker that is up."""
    return {
        worker.slurm_name
        for worker in snapshot.workers
        if worker.uid not in leaving and worker.record is not None and _needs_no_memory(worker, worker.record)
    }


def _needs_no_memory(worker: Worker, record: SlurmNode) -> bool:
    if not is_out(record):
        return worker.speaks_for_record or worker.terminating
    return worker.speaks_for_record and not (record.ours or is_of_machine(record))


def _is_settled(snapshot: Snapshot, where: str, uid: str) -> bool:
    """A successor was born with the cordon, or the pod is still there and its user took the cordon off."""
    here = [w for w in snapshot.workers if place(w, daemon=snapshot.nodeset.daemon) == where]
    return any(not w.terminating and (w.uid != uid or not is_users(w)) for w in here)
