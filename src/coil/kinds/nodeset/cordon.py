"""Keep cordon marks on pods and drains in Slurm as wanted, touching only our own (spec: nodeset 13).

The order makes a crash at any point harmless: a pod is first marked with the cause, then drained; it is
first undrained, and loses the mark in a later pass, when Slurm shows it undrained. Where many idle workers
leave at once there are no marks (`passing`).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from msgspec import structs

from coil.api import keys
from coil.kinds.nodeset.actions import Action, Drain, SlurmAction, Undrain
from coil.kinds.nodeset.drain import (
    POD_TERMINATING,
    Cause,
    Reason,
    drain_reason,
    is_cordoned,
    own_cause,
)
from coil.kinds.nodeset.held import is_overwritten, is_users
from coil.kinds.nodeset.ownership import is_own, is_silent
from coil.kinds.nodeset.removal import is_idle
from coil.kinds.nodeset.snapshot import Held, Snapshot, Worker
from coil.slurm.wire import SlurmNode

MANY = 16
"""When more idle workers than this leave at once, they go without a mark on their pods: see `passing`."""

OWN_REASONS = 16
"""Up to so many pods are drained each with a reason that names it; more go in one call with one reason."""

_KEEP = Reason("", "")
"""Without a text Slurm keeps the reason that it has by then, whoever gave it."""

_POWERING = frozenset({"POWERED_DOWN", "POWERING_UP", "POWER_UP"})

_NOT_UNDRAINED = frozenset(
    {"DOWN", "NOT_RESPONDING", "INVALID_REG", "POWERING_DOWN", "REBOOT_ISSUED", "REBOOT_REQUESTED"}
)


def wanted_cause(worker: Worker, condemned: Mapping[str, Cause]) -> Cause | None:
    """Why the operator wants this pod cordoned, if it does."""
    if worker.uid in condemned:
        return condemned[worker.uid]
    if worker.host is not None and worker.host.spec.unschedulable:
        return Cause.NODE
    return None


def passing(snapshot: Snapshot, condemned: Mapping[str, Cause]) -> frozenset[str]:
    """Uids of workers that leave for scale-in so soon that nothing is written on their pods any more.

    They are idle and serve nobody else's purpose; once drained they are deleted. Should the operator end in
    between, the wanted replicas and its reason in Slurm say what was meant: who stays after all is undrained.
    """
    leaving = (w for w in snapshot.workers if condemned.get(w.uid) is Cause.SCALE_IN)
    found = [worker for worker in leaving if _passes(worker, snapshot.held)]
    drained = [worker for worker in found if worker.free]
    many = len(found) - len(drained) > MANY
    return frozenset(worker.uid for worker in (found if many else drained))


def _passes(worker: Worker, held: Held) -> bool:
    """Idle and unmarked, and a drain of its node would be ours, and ours to undo."""
    record = worker.record
    if record is None or not worker.speaks_for_record or not is_idle(worker):
        return False
    if worker.slurm_name in held.drains or keys.ANNOTATION_POD_CORDON in worker.annotations:
        return False
    plain = _NOT_UNDRAINED.isdisjoint(record.state)
    return plain and (is_own(record) if record.drain else not record.reason)


def plan_drains(snapshot: Snapshot, condemned: Mapping[str, Cause]) -> list[SlurmAction]:
    """Bring Slurm's DRAIN flags in line with the wanted cordons."""
    drains: list[tuple[str, Reason]] = []
    undrains: list[str] = []
    for worker in snapshot.workers:
        record = worker.record
        if record is None or worker.terminating or worker.finished:
            continue
        cause = wanted_cause(worker, condemned)
        if cause is not None or is_users(worker):
            reason = _reason_to_drain(worker, record, cause, snapshot)
            if reason is not None:
                drains.append((worker.slurm_name, reason))
        elif (
            worker.host is not None
            and worker.speaks_for_record
            and _may_undrain(worker, record, snapshot.held)
        ):
            undrains.append(worker.slurm_name)
    # What returns to service goes first: never more is drained at a time than planned.
    undrain = [Undrain(nodes=tuple(undrains))] if undrains else []
    return [*undrain, *_bundled(drains)]


def without_unmarked(actions: Sequence[Action], unmarked: Collection[str]) -> list[Action]:
    """The actions without drains of nodes whose pods could not be marked: they would be nobody's."""
    kept: list[Action] = []
    for action in actions:
        if isinstance(action, Drain):
            action = structs.replace(action, nodes=tuple(n for n in action.nodes if n not in unmarked))  # noqa: PLW2901
        if not isinstance(action, Drain) or action.nodes:
            kept.append(action)
    return kept


def cordon_marks(worker: Worker, cause: Cause | None) -> dict[str, str | None]:
    """Annotations to change so that the pod says whether it is cordoned, and why."""
    if cause is not None:
        if is_users(worker) or own_cause(worker) is cause:
            return {}
        return {keys.ANNOTATION_POD_CORDON: "true", keys.ANNOTATION_POD_CORDON_CAUSE: cause.value}
    if own_cause(worker) is not None:
        if _is_needed(worker):
            return {}
        return {keys.ANNOTATION_POD_CORDON: None, keys.ANNOTATION_POD_CORDON_CAUSE: None}
    if keys.ANNOTATION_POD_CORDON_CAUSE in worker.annotations and not is_cordoned(worker):
        return {keys.ANNOTATION_POD_CORDON_CAUSE: None}
    return {}


def _is_needed(worker: Worker) -> bool:
    """Our mark tells of a drain that is still there, or of a machine that cannot be looked at now."""
    if worker.record is not None and _is_own_drain(worker, worker.record):
        return True
    return own_cause(worker) is Cause.NODE and not (worker.host is not None and worker.healthy)


def _reason_to_drain(
    worker: Worker, record: SlurmNode, cause: Cause | None, snapshot: Snapshot
) -> Reason | None:
    """The reason to drain with; None when nothing is to be written."""
    if record.drain or _wakes_up_for_a_job(worker, record):
        return None
    condemned = cause is not None and cause.condemns
    if not record.ours:
        # Somebody else took the node down. To delete the pod it must be drained too; the reason stays.
        return _KEEP if condemned else None
    remembered = snapshot.held.drains.get(worker.slurm_name)
    if remembered is not None and is_overwritten(record):
        return Reason(remembered, remembered)
    if condemned or record.reason in ("", POD_TERMINATING):
        return drain_reason(cause, worker, snapshot.propagated_conditions)
    return _KEEP


def _wakes_up_for_a_job(worker: Worker, record: SlurmNode) -> bool:
    """Slurmctld kills or requeues the jobs of a node that is set to DRAIN before it is powered up."""
    return bool(record.busy or worker.jobs) and not _POWERING.isdisjoint(record.state)


def _may_undrain(worker: Worker, record: SlurmNode, held: Held) -> bool:
    """Our own drain, on a node that takes jobs then: a dead one would let them fail, others are refused."""
    if worker.slurm_name in held.drains:
        return False
    return _NOT_UNDRAINED.isdisjoint(record.state) and _is_own_drain(worker, record)


def _is_own_drain(worker: Worker, record: SlurmNode) -> bool:
    """The operator drained this node.

    A node that was silent when we drained it kept Slurm's reason; the mark on the pod tells then.
    """
    if not record.drain:
        return False
    return is_own(record) or (own_cause(worker) is not None and is_silent(record))


def _bundled(drains: Sequence[tuple[str, Reason]]) -> list[Drain]:
    """One call for all nodes with one reason; many nodes share a reason, to be drained in one call."""
    nodes: defaultdict[str, list[str]] = defaultdict(list)
    for node, reason in drains:
        nodes[reason.own if len(drains) <= OWN_REASONS else reason.shared].append(node)
    return [Drain(nodes=tuple(names), reason=reason) for reason, names in nodes.items()]
