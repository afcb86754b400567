"""What to do about a NodeSet: pure, from a snapshot and the time to actions with reasons.

    plan = make_plan(snapshot, now)
    if plan.ask_slurm:                # some action rests on what Slurm says: ask it, then plan again
        ...

A plan made from an older view of Slurm never changes a node's state and deletes nothing because of what
the view says: it asks for a fresh view instead (invariants I1 and I3).
"""

import math
from collections.abc import Collection, Mapping, Sequence

import msgspec

from coil.kinds.nodeset import times
from coil.kinds.nodeset.actions import (
    Action,
    DeletePod,
    Drain,
    Notice,
    PatchConditions,
    PatchPod,
    Resume,
    SlurmAction,
    Undrain,
)
from coil.kinds.nodeset.cordon import passing, plan_drains, wanted_cause
from coil.kinds.nodeset.daemons import plan_daemons
from coil.kinds.nodeset.departures import plan_departures
from coil.kinds.nodeset.drain import Cause
from coil.kinds.nodeset.held import plan_memory, plan_restores
from coil.kinds.nodeset.marks import plan_patch
from coil.kinds.nodeset.notices import plan_notices
from coil.kinds.nodeset.prune import plan_pruning
from coil.kinds.nodeset.records import plan_comments, plan_features, plan_topology
from coil.kinds.nodeset.removal import is_idle
from coil.kinds.nodeset.replicas import plan_replicas
from coil.kinds.nodeset.retention import plan_retention
from coil.kinds.nodeset.revive import plan_revivals
from coil.kinds.nodeset.rollout import plan_rollout
from coil.kinds.nodeset.scaling import Scaling
from coil.kinds.nodeset.snapshot import Known, Registration, Snapshot, Worker
from coil.kinds.nodeset.starting import due_in
from coil.kinds.nodeset.states import condition_changes, shows_any

RESYNC = 30.0
"""Seconds after which a NodeSet is looked at even if nothing was heard of it."""

SILENCE = 10.0
"""The same while Slurm gives no answer, so that its return is noticed soon (invariant I6)."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Actions in the order in which they are to be done."""

    scaling: Scaling
    actions: tuple[Action, ...] = ()
    notices: tuple[Notice, ...] = ()
    requeue_after: float = RESYNC
    ask_slurm: bool = False
    """Nothing may be done before Slurm was asked again."""
    conflicts: tuple[str, ...] = ()
    """Volume claims whose owner is not ours to set."""
    waiting: Mapping[str, str] = {}
    """Pods that have to go and cannot yet, with the reason."""
    frees: bool = False
    """It drains workers that have to go and run no job: Slurm may free them as soon as it is asked again."""


def make_plan(snapshot: Snapshot, now: float) -> Plan:
    """Decide what this pass does; `now` in UNIX seconds."""
    scaling = plan_daemons(snapshot) if snapshot.nodeset.daemon else plan_replicas(snapshot)
    if not snapshot.settled:
        return _meanwhile(snapshot, scaling, now)
    condemned = {**plan_rollout(snapshot, scaling, now), **scaling.condemned}
    departures = plan_departures(snapshot, condemned, scaling, now)
    revivals = plan_revivals(snapshot, condemned)
    states = [*plan_drains(snapshot, condemned), *plan_restores(snapshot), *revivals, *plan_pruning(snapshot)]
    if _rests_on_old_view(snapshot, states, departures.deletions):
        return Plan(scaling=scaling, ask_slurm=True)
    gone = {deletion.uid for deletion in departures.deletions}
    _assert_apart(snapshot, states, gone | condemned.keys())
    wanted = _causes(snapshot, condemned)
    leaving = gone | passing(snapshot, condemned)
    patches = _patches(snapshot, wanted, leaving)
    retention = plan_retention(snapshot, condemned)
    revived = {name for revival in revivals for name in revival.nodes}
    comments, comments_due = plan_comments(snapshot, revived, now)
    conditions, conditions_due = _conditions(snapshot, leaving, now)
    return Plan(
        scaling=scaling,
        actions=(
            *patches,
            *states,
            *retention.changes,
            *plan_memory(snapshot, departures.deletions),
            *departures.deletions,
            *(() if snapshot.fault else scaling.create),
            *comments,
            *plan_topology(snapshot),
            *plan_features(snapshot.workers),
            *conditions,
        ),
        notices=tuple(plan_notices(snapshot, scaling, wanted, patches, departures)),
        requeue_after=_requeue(snapshot, min(departures.retry_after, comments_due, conditions_due), now),
        conflicts=retention.conflicts,
        waiting=departures.waiting,
        frees=_frees(snapshot, condemned, states),
    )


def _meanwhile(snapshot: Snapshot, scaling: Scaling, now: float) -> Plan:
    """While the caches do not show what earlier passes did: nothing but what pods show of Slurm."""
    if scaling.goes_on:
        return Plan(scaling=scaling)
    conditions, due = _conditions(snapshot, (), now)
    return Plan(scaling=scaling, actions=tuple(conditions), requeue_after=max(min(due, RESYNC), 1.0))


def _frees(snapshot: Snapshot, condemned: Mapping[str, Cause], states: Sequence[SlurmAction]) -> bool:
    drained = {name for action in states if isinstance(action, Drain) for name in action.nodes}
    return bool(drained) and any(
        w.slurm_name in drained and w.uid in condemned and is_idle(w) for w in snapshot.workers
    )


def _rests_on_old_view(
    snapshot: Snapshot, states: Sequence[SlurmAction], deletions: Sequence[DeletePod]
) -> bool:
    if not isinstance(snapshot.slurm, Known) or snapshot.slurm.fresh:
        return False
    return bool(states) or any(deletion.needs_fresh for deletion in deletions)


def _assert_apart(snapshot: Snapshot, states: Sequence[SlurmAction], leaving: Collection[str]) -> None:
    """No node returns to service while a pod that may run under its name leaves: jobs would start and die.

    By the rules above this cannot be; a fault in them must not cost a job.
    """
    names = {w.slurm_name for w in snapshot.workers if w.uid in leaving and not w.finished}
    returning = {n for action in states if isinstance(action, Undrain | Resume) for n in action.nodes}
    if names & returning:
        raise AssertionError(f"Slurm nodes return to service while their pods leave: {names & returning}")


def _causes(snapshot: Snapshot, condemned: Mapping[str, Cause]) -> dict[str, Cause]:
    """Causes for which pods are to be cordoned, by uid."""
    found = {worker.uid: wanted_cause(worker, condemned) for worker in snapshot.workers}
    return {uid: cause for uid, cause in found.items() if cause is not None}


def _staying(snapshot: Snapshot, gone: Collection[str]) -> list[Worker]:
    return [w for w in snapshot.workers if not w.terminating and not w.finished and w.uid not in gone]


def _patches(snapshot: Snapshot, wanted: Mapping[str, Cause], gone: Collection[str]) -> list[PatchPod]:
    patches = (plan_patch(worker, snapshot, wanted.get(worker.uid)) for worker in _staying(snapshot, gone))
    return [patch for patch in patches if patch is not None]


def _conditions(snapshot: Snapshot, gone: Collection[str], now: float) -> tuple[list[PatchConditions], float]:
    """Slurm states to show on pods, and the seconds after which those that wait are due.

    Pods about which nothing is known keep what they show; what was just done to a pod is awaited first. When
    many show nothing yet they are starting, and wait until they have started.
    """
    written_at = times.text(now)
    staying = (worker for worker in _staying(snapshot, gone) if worker.uid not in snapshot.under_way)
    patches = ((worker, _condition_patch(worker, written_at)) for worker in staying)
    found = [(worker, patch) for worker, patch in patches if patch is not None]
    first = {worker.uid for worker, _ in found if not shows_any(worker.pod)}
    due = due_in(snapshot, first, now)
    if due <= 0:
        return [patch for _, patch in found], math.inf
    return [patch for _, patch in found if patch.uid not in first], due


def _condition_patch(worker: Worker, written_at: str) -> PatchConditions | None:
    if worker.registration is Registration.UNKNOWN:
        return None
    written, removed = condition_changes(worker.pod, worker.record, written_at)
    if not written and not removed:
        return None
    version = worker.pod.metadata.resource_version
    return PatchConditions(
        name=worker.name, uid=worker.uid, resource_version=version, wanted=written, removed=removed
    )


def _requeue(snapshot: Snapshot, retry_after: float, now: float) -> float:
    """The smallest delay after which something is to be done (spec: nodeset 30, Q6)."""
    delay = snapshot.nodeset.spec.min_ready_seconds
    ready = (worker for worker in snapshot.workers if worker.pod.ready)
    ripening = (w.ready_since + delay - now for w in ready if not w.available(delay, now))
    base = RESYNC if snapshot.known else SILENCE
    return max(min(base, retry_after, min(ripening, default=math.inf)), 1.0)
