"""Which pods are deleted in this pass, and which have to wait and for what (spec: nodeset 16, 19)."""

import math
from collections.abc import Iterator, Mapping

import msgspec

from coil.kinds.nodeset.actions import DeletePod
from coil.kinds.nodeset.drain import Cause
from coil.kinds.nodeset.removal import Verdict, may_delete
from coil.kinds.nodeset.rollout import disruption_budget
from coil.kinds.nodeset.scaling import BURST, Scaling
from coil.kinds.nodeset.snapshot import Registration, Snapshot, Worker
from coil.kinds.nodeset.times import seconds

DAEMON_PAUSE = 60.0
"""Least seconds between the creations of two daemon pods on a node where they end at once."""


class Departures(msgspec.Struct, frozen=True, kw_only=True):
    """Deletions of one pass."""

    deletions: tuple[DeletePod, ...]
    lost: tuple[str, ...] = ()
    """Names of those deleted pods that Slurm does not list although they are ready."""
    waiting: Mapping[str, str] = {}
    """Pods that have to go and cannot yet, with the reason."""
    retry_after: float = math.inf
    """Seconds after which one of the waiting may go."""


def plan_departures(
    snapshot: Snapshot, condemned: Mapping[str, Cause], scaling: Scaling, now: float
) -> Departures:
    """Judge every pod that has to go, that ended, or that is ready but unknown to Slurm."""
    deletions: list[DeletePod] = []
    waiting: dict[str, str] = {}
    retry = math.inf
    lost = _lost(snapshot, condemned, scaling, now)
    for worker in _leaving(snapshot, condemned):
        verdict = _verdict(worker, snapshot, now)
        if verdict.allowed:
            deletions.append(_deletion(worker, verdict, condemned.get(worker.uid)))
        else:
            waiting[worker.name] = verdict.why
        retry = min(retry, _or_never(verdict.retry_after))
    for worker in lost:
        verdict = may_delete(worker, snapshot)
        deletions.append(_deletion(worker, verdict, None))
    return Departures(
        deletions=tuple(deletions[:BURST]),
        lost=tuple(worker.name for worker in lost),
        waiting=waiting,
        retry_after=min(retry, _next_grace(snapshot)),
    )


def _leaving(snapshot: Snapshot, condemned: Mapping[str, Cause]) -> Iterator[Worker]:
    for worker in snapshot.workers:
        if not worker.terminating and (worker.finished or worker.uid in condemned):
            yield worker


def _verdict(worker: Worker, snapshot: Snapshot, now: float) -> Verdict:
    """A daemon pod that ends at once would be made anew at once, for ever: it waits a little."""
    left = seconds(worker.pod.metadata.creation_timestamp) + DAEMON_PAUSE - now
    if snapshot.nodeset.daemon and worker.finished and left > 0:
        return Verdict(allowed=False, why="pod has ended too soon after it was made", retry_after=left)
    return may_delete(worker, snapshot)


def _lost(snapshot: Snapshot, condemned: Mapping[str, Cause], scaling: Scaling, now: float) -> list[Worker]:
    """Ready workers that Slurm does not list, as many as may be out of service at once."""
    delay = snapshot.nodeset.spec.min_ready_seconds
    found = [
        worker
        for worker in scaling.mine
        if worker.registration is Registration.ABSENT
        and worker.healthy
        and worker.available(delay, now)
        and worker.uid not in condemned
        and may_delete(worker, snapshot).allowed
    ]
    if not found:
        return []
    apart = {worker.uid for worker in found}
    return found[: disruption_budget(snapshot, scaling, condemned, now, apart=apart)]


def _next_grace(snapshot: Snapshot) -> float:
    """When the first ready worker that Slurm does not list has had its time to register."""
    absent = (w for w in snapshot.workers if w.registration is Registration.ABSENT and w.healthy)
    return min((_or_never(may_delete(worker, snapshot).retry_after) for worker in absent), default=math.inf)


def _or_never(seconds: float | None) -> float:
    return math.inf if seconds is None else seconds


def _deletion(worker: Worker, verdict: Verdict, cause: Cause | None) -> DeletePod:
    return DeletePod(
        name=worker.name,
        uid=worker.uid,
        why=verdict.why,
        resource_version=worker.pod.metadata.resource_version if verdict.exact else None,
        needs_fresh=verdict.needs_fresh,
        cause=cause,
    )
