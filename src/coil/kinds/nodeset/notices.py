"""Events about decisions: told when one is made, not while it stands (spec: nodeset 26, invariant I8)."""

from collections.abc import Iterable, Iterator, Mapping

from coil.kinds.nodeset.actions import Notice, PatchPod
from coil.kinds.nodeset.departures import Departures
from coil.kinds.nodeset.drain import Cause, own_cause
from coil.kinds.nodeset.scaling import Scaling
from coil.kinds.nodeset.snapshot import Snapshot, Worker


def plan_notices(
    snapshot: Snapshot,
    scaling: Scaling,
    wanted: Mapping[str, Cause],
    patches: Iterable[PatchPod],
    departures: Departures,
) -> Iterator[Notice]:
    """The events of this pass.

    Args:
        snapshot: what the pass knows.
        scaling: the wanted change of the number of workers.
        wanted: causes for which pods are cordoned, by uid.
        patches: changes of pods, of which those that set another cause are news.
        departures: pods deleted in this pass.
    """
    touched = {patch.uid for patch in patches} | {deletion.uid for deletion in departures.deletions}
    news = [w for w in snapshot.workers if w.uid in touched and _is_news(w, wanted)]
    if scaling.create and snapshot.fault is None:
        what = _amount(snapshot, scaling, scaling.missing)
        yield Notice(type="Normal", reason="ScalingUp", action="ScaleUp", note=f"Creating {what}")
    if leaving := sum(wanted[worker.uid] is Cause.SCALE_IN for worker in news):
        what = _amount(snapshot, scaling, leaving)
        yield Notice(type="Normal", reason="ScalingDown", action="ScaleDown", note=f"Deleting {what}")
    yield from _update(snapshot, [w for w in news if wanted[w.uid] is Cause.UPDATE])
    yield from (_node_cordon(w) for w in news if wanted[w.uid] is Cause.NODE)
    yield from (_mismatch(w) for w in news if wanted[w.uid] is Cause.REPLACE and not w.never_ran)
    if snapshot.nodeset.daemon:
        yield from (_ended(w) for w in snapshot.workers if w.uid in touched and w.finished)
    for name in departures.lost:
        note = f"Pod {name} is ready but not registered in Slurm, deleting it"
        yield Notice(type="Warning", reason="SlurmNodeNotRegistered", action="Delete", note=note, pod=name)


def _is_news(worker: Worker, wanted: Mapping[str, Cause]) -> bool:
    return worker.uid in wanted and own_cause(worker) is not wanted[worker.uid]


def _amount(snapshot: Snapshot, scaling: Scaling, count: int) -> str:
    if snapshot.nodeset.daemon:
        return f"{count} daemon Pod(s)"
    return f"{count} Pod(s) to stabilize at {scaling.desired} replicas"


def _update(snapshot: Snapshot, leaving: Iterable[Worker]) -> Iterator[Notice]:
    scheduled = snapshot.nodeset.spec.update_strategy.type == "ScheduledUpdate"
    reason, action = (
        ("Scheduled Update", "ScheduledUpdate") if scheduled else ("RollingUpdate", "RollingUpdate")
    )
    words = "Scheduled update" if scheduled else "Rolling update"
    workers = list(leaving)
    unhealthy = sum(not worker.healthy for worker in workers)
    if unhealthy:
        note = f"{words}: deleting {unhealthy} unhealthy old pod(s)"
        yield Notice(type="Normal", reason=reason, action=action, note=note)
    if replaced := len(workers) - unhealthy:
        note = f"{words}: replacing {replaced} old pod(s)"
        yield Notice(type="Normal", reason=reason, action=action, note=note)


def _node_cordon(worker: Worker) -> Notice:
    node = worker.pod.spec.node_name
    note = f"Node ({node}) was cordoned, Pod ({worker.pod.metadata.key}) must be cordoned"
    return Notice(type="Normal", reason="NodeCordon", action="Cordon", note=note, pod=worker.name)


def _mismatch(worker: Worker) -> Notice:
    note = f"Pod {worker.name} has another host name than its node asks for, replacing it"
    return Notice(type="Normal", reason="HostnameMismatch", action="Info", note=note, pod=worker.name)


def _ended(worker: Worker) -> Notice:
    phase, name = worker.pod.status.phase, worker.name
    note = f"Daemon Pod {name} has ended ({phase}), deleting it"
    kind = "Warning" if phase == "Failed" else "Normal"
    return Notice(type=kind, reason=f"{phase}DaemonPod", action="Info", note=note, pod=name)
