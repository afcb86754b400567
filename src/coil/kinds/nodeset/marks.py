"""Labels and annotations that tell about a worker on its pod (spec: nodeset 12, 16.4, 20, 24.5).

What Slurm would have to say stays as it is while Slurm is silent (spec: nodeset 30, Q24).
"""

from collections.abc import Mapping

from coil.api import keys
from coil.kinds.nodeset import times
from coil.kinds.nodeset.actions import PatchPod
from coil.kinds.nodeset.cordon import cordon_marks
from coil.kinds.nodeset.drain import Cause
from coil.kinds.nodeset.snapshot import Registration, Snapshot, Worker


def plan_patch(worker: Worker, snapshot: Snapshot, cause: Cause | None) -> PatchPod | None:
    """All changes of one pod's metadata in one patch; None when it is as wanted."""
    labels = _name_label(worker)
    annotations = topology_mark(worker)
    if snapshot.known:
        annotations |= cordon_marks(worker, cause)
        annotations |= _deadline(worker, snapshot)
        labels |= _protection(worker, snapshot)
    if not labels and not annotations:
        return None
    return PatchPod(
        name=worker.name,
        uid=worker.uid,
        resource_version=worker.pod.metadata.resource_version,
        labels=labels,
        annotations=annotations,
        marks=worker.slurm_name if annotations.get(keys.ANNOTATION_POD_CORDON) == "true" else "",
    )


def host_topology(worker: Worker) -> str | None:
    """Topology that the Kubernetes node gives; None when nobody ever gave one, which leaves it to Slurm."""
    if worker.host is None:
        return None
    given = worker.host.metadata.annotations.get(keys.ANNOTATION_TOPOLOGY)
    if given is None and worker.annotations.get(keys.ANNOTATION_TOPOLOGY):
        return ""
    return given


def topology_mark(worker: Worker) -> dict[str, str | None]:
    """Bring the node's topology to the pod, once Slurm has taken it over when it is being removed."""
    wanted = host_topology(worker)
    if wanted is None or worker.annotations.get(keys.ANNOTATION_TOPOLOGY) == wanted:
        return {}
    return {keys.ANNOTATION_TOPOLOGY: wanted}


def _name_label(worker: Worker) -> dict[str, str | None]:
    """The pod's own name, which a server-generated one does not know when it is created."""
    return _change(worker.labels, keys.LABEL_POD_NAME, worker.name)


def _deadline(worker: Worker, snapshot: Snapshot) -> dict[str, str | None]:
    """When the last running job must have ended; it stays while jobs may be missing from the answer."""
    if worker.registration is Registration.UNKNOWN or not snapshot.whole:
        return {}
    wanted = None if worker.deadline is None else times.text(worker.deadline)
    return _change(worker.annotations, keys.ANNOTATION_POD_DEADLINE, wanted)


def _protection(worker: Worker, snapshot: Snapshot) -> dict[str, str | None]:
    """The label that the disruption budget selects: evictions of busy workers are refused.

    It stays while Slurm does not list the node, or may have left out jobs.
    """
    wanted = snapshot.nodeset.spec.workload_disruption_protection
    busy = bool(worker.jobs) or (worker.record is not None and worker.record.busy)
    protect = wanted and busy
    if wanted and not busy and (worker.record is None or not snapshot.whole):
        return {}
    return _change(worker.labels, keys.LABEL_POD_PROTECT, "true" if protect else None)


def _change(live: Mapping[str, str], key: str, wanted: str | None) -> dict[str, str | None]:
    return {} if live.get(key) == wanted else {key: wanted}
