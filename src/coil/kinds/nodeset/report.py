"""The NodeSet's status: counters and conditions (spec: nodeset 2.3, 24.2, 24.3).

Conditions of our own, present from the first pass, the second one from the first answer on:

| type | False when |
|---|---|
| `Reconciled` | a step of the pass failed, or pods wait to leave, or an update waits |
| `SlurmReachable` | Slurm gave no whole answer; nothing is drained, undrained or deleted then |
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from coil.api import keys, names
from coil.api.conditions import find, with_condition
from coil.api.meta import Condition, JsonObject
from coil.api.nodeset import NodeSetStatus
from coil.kinds.nodeset import times
from coil.kinds.nodeset.pins import pins
from coil.kinds.nodeset.plan import Plan
from coil.kinds.nodeset.rollout import in_service, is_current
from coil.kinds.nodeset.snapshot import Known, Snapshot, Unknown
from coil.kinds.nodeset.states import count_states
from coil.kinds.status import RECONCILED, SLURM_REACHABLE, Problem, condition, reconciled
from coil.kube.views import ContainerStatusView

_SHOWN = 3
"""Pods named in a message; the others are counted."""

_LONG_ABSENT = 30.0
"""Seconds for which ready workers may be missing in Slurm before that is told: new ones are for a moment."""

NOT_STARTING = "WorkersDoNotStart"
_PULL_FAILS = frozenset({"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"})
_START_FAILS = frozenset(
    {"CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
)


def status(snapshot: Snapshot, plan: Plan, problems: Sequence[Problem], now: float) -> NodeSetStatus:
    """The status after a pass."""
    live = snapshot.nodeset.status
    conditions = list(live.conditions)
    for wanted in filter(None, (_slurm_reachable(snapshot), _reconciled(snapshot, plan, problems, now))):
        conditions = with_condition(conditions, wanted, times.text(now))
    return msgspec.structs.replace(
        live,
        **_replicas(snapshot, plan.scaling.desired, now),
        **_slurm_counters(snapshot),
        collision_count=live.collision_count or 0,
        conditions=conditions,
        desired=plan.scaling.desired,
        node_set_hash=snapshot.revision,
        ordinal_to_node=pins(snapshot),
        observed_generation=snapshot.nodeset.metadata.generation,
        selector=names.selector_text(keys.SLURMD, snapshot.nodeset.metadata.name),
    )


def status_patch(live: NodeSetStatus, wanted: NodeSetStatus) -> JsonObject:
    """JSON merge patch that turns one status into the other; empty when they are equal."""
    old, new = _wire(live), _wire(wanted)
    changes = {name: new.get(name) for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    # The schema requires these two even when they are empty, in a status that is being made now.
    required = {"nodeSetHash": wanted.node_set_hash, "selector": wanted.selector}
    return {**required, **changes} if changes else {}


def _wire(status: NodeSetStatus) -> JsonObject:
    """As it is written: a condition has a message even when that is empty."""
    wire: JsonObject = msgspec.to_builtins(status)
    conditions = [{"message": "", **condition} for condition in wire.get("conditions", ())]
    return {**wire, "conditions": conditions} if conditions else wire


def _replicas(snapshot: Snapshot, desired: int, now: float) -> Mapping[str, int]:
    created = [worker for worker in snapshot.workers if worker.pod.status.phase]
    ready = [worker for worker in created if worker.pod.status.phase == "Running" and worker.pod.ready]
    delay = snapshot.nodeset.spec.min_ready_seconds
    available = sum(worker.available(delay, now) for worker in ready)
    total = desired if snapshot.nodeset.daemon else len(created)
    return {
        "replicas": len(created),
        "updated_replicas": sum(is_current(w, snapshot) and not w.terminating for w in created),
        "ready_replicas": len(ready),
        "available_replicas": available,
        "unavailable_replicas": min(max(total - available, 0), total),
    }


def _slurm_counters(snapshot: Snapshot) -> Mapping[str, int]:
    """What Slurm said; the last known counters stay while it is silent."""
    if not snapshot.known:
        return {}
    return count_states(worker.record for worker in snapshot.workers if worker.record is not None)


def _slurm_reachable(snapshot: Snapshot) -> Condition | None:
    """An outage keeps its first message: what the network says differs from try to try."""
    nodeset = snapshot.nodeset
    match snapshot.slurm:
        case Unknown(not_yet=True):
            return None
        case Known(doubt="") if missing := _missing(snapshot):
            told = condition(nodeset, SLURM_REACHABLE, "False", "IncompleteAnswer", missing)
        case Known(doubt="", peer=peer):
            return condition(nodeset, SLURM_REACHABLE, "True", "Answers", peer)
        case Known(doubt=doubt):
            told = condition(nodeset, SLURM_REACHABLE, "False", "IncompleteAnswer", doubt)
        case Unknown(reason=reason, message=message):
            told = condition(nodeset, SLURM_REACHABLE, "False", reason, message)
    old = find(nodeset.status.conditions, SLURM_REACHABLE)
    if old is not None and (old.status, old.reason) == (told.status, told.reason):
        return msgspec.structs.replace(told, message=old.message)
    return told


def _missing(snapshot: Snapshot) -> str:
    """What to say when Slurm has for long listed less of the ready workers than it should."""
    if not snapshot.mostly_absent:
        return ""
    absent = sum(worker.healthy and worker.absent_for >= _LONG_ABSENT for worker in snapshot.workers)
    return "Slurm does not list half of the ready workers" if absent else ""


def not_starting(snapshot: Snapshot) -> list[Problem]:
    """Containers that the kubelet cannot start; the text is the same at every try (invariant I8)."""
    pods: defaultdict[str, list[str]] = defaultdict(list)
    for worker in snapshot.workers:
        status = worker.pod.status
        if not worker.terminating and not worker.finished:
            for container in (*status.init_container_statuses, *status.container_statuses):
                if what := _hindrance(container):
                    pods[what].append(worker.name)
    return [Problem("Workers", NOT_STARTING, f"{_some(names)}: {what}") for what, names in pods.items()]


def _hindrance(container: ContainerStatusView) -> str:
    waiting = container.state.waiting
    if waiting is not None and waiting.reason in _PULL_FAILS:
        return f"image {container.image} cannot be pulled"
    if waiting is not None and waiting.reason in _START_FAILS:
        return f"container {container.name} does not start ({waiting.reason})"
    return ""


def _some(names: Sequence[str]) -> str:
    shown, more = sorted(names)[:_SHOWN], len(names) - _SHOWN
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def shared_names(snapshot: Snapshot) -> list[Problem]:
    """Workers that are one Slurm node with another pod: nothing is undrained or described for them."""
    names = sorted(
        {worker.slurm_name for worker in snapshot.workers if worker.shared and not worker.finished}
    )
    if not names:
        return []
    message = (
        f"several pods have the Slurm name {_some(names)}: it is not returned to service"
        " until one is left; give each NodeSet machines or host names of its own"
    )
    return [Problem("SlurmNodes", "SlurmNameShared", message)]


def _reconciled(snapshot: Snapshot, plan: Plan, problems: Sequence[Problem], now: float) -> Condition:
    if problems or not (plan.waiting or _update_waits(snapshot, plan)):
        return reconciled(snapshot.nodeset, problems)
    if not plan.waiting:
        out = [worker.name for worker in plan.scaling.staying if not in_service(worker, snapshot, now)]
        named = f": {_some(out)}" if out else ""
        message = f"workers of an earlier revision wait, as others are not in service yet{named}"
        return condition(snapshot.nodeset, RECONCILED, "False", "UpdateWaits", message)
    shown = [f"{name}: {why}" for name, why in sorted(plan.waiting.items())[:_SHOWN]]
    more = len(plan.waiting) - len(shown)
    message = "; ".join(shown) + (f"; and {more} more" if more else "")
    return condition(snapshot.nodeset, RECONCILED, "False", "PodsWaitToLeave", message)


def _update_waits(snapshot: Snapshot, plan: Plan) -> bool:
    """Old workers are left that a rolling update is to replace; with other strategies they may stay."""
    rolling = snapshot.nodeset.spec.update_strategy.type == "RollingUpdate"
    return rolling and not all(is_current(worker, snapshot) for worker in plan.scaling.staying)
