"""Slurm node states as conditions of pods, and as counters of the NodeSet (spec: nodeset 24.2, 24.5)."""

from collections.abc import Iterable, Mapping

from coil.api import keys
from coil.kube.views import ConditionView, PodView
from coil.slurm.wire import SlurmNode

_FLAGS = (
    "COMPLETING",
    "DRAIN",
    "FAIL",
    "INVALID",
    "INVALID_REG",
    "MAINTENANCE",
    "NOT_RESPONDING",
    "UNDRAIN",
)


def condition_types(record: SlurmNode | None) -> list[str]:
    """Types of the conditions that a pod with this Slurm node has; none for an absent node."""
    if record is None:
        return []
    states = [state for state in (record.base_state, *_FLAGS) if state in record.state]
    return [_type(state) for state in states]


def condition_changes(
    pod: PodView, record: SlurmNode | None, now: str
) -> tuple[tuple[ConditionView, ...], tuple[str, ...]]:
    """Conditions to write and types to remove, so that the pod shows the state of its Slurm node."""
    live = {c.type: c for c in pod.status.conditions if c.type.startswith(keys.CONDITION_PREFIX)}
    wanted = condition_types(record)
    message = record.reason if record is not None else ""
    written = tuple(
        _true(kind, message, _since(live.get(kind), now))
        for kind in wanted
        if not _holds(live.get(kind), message)
    )
    return written, tuple(sorted(live.keys() - set(wanted)))


def shows_any(pod: PodView) -> bool:
    """The pod has told of its Slurm node before."""
    return any(condition.type.startswith(keys.CONDITION_PREFIX) for condition in pod.status.conditions)


def count_states(records: Iterable[SlurmNode]) -> Mapping[str, int]:
    """The `slurm*` counters of the status. Idle counts drained nodes too."""
    counts = {"slurm_idle": 0, "slurm_allocated": 0, "slurm_down": 0, "slurm_drain": 0}
    members = {"IDLE": "slurm_idle", "ALLOCATED": "slurm_allocated", "MIXED": "slurm_allocated"}
    members["DOWN"] = "slurm_down"
    for record in records:
        if (member := members.get(record.base_state)) is not None:
            counts[member] += 1
        counts["slurm_drain"] += "DRAIN" in record.state
    return counts


def _type(state: str) -> str:
    """INVALID_REG becomes SlurmNodeStateInvalidReg."""
    return keys.CONDITION_PREFIX + state.title().replace("_", "")


def _true(kind: str, message: str, since: str) -> ConditionView:
    return ConditionView(type=kind, status="True", message=message, last_transition_time=since)


def _holds(live: ConditionView | None, message: str) -> bool:
    return live is not None and live.status == "True" and live.message == message


def _since(live: ConditionView | None, now: str) -> str:
    unchanged = live is not None and live.status == "True" and live.last_transition_time
    return unchanged or now
