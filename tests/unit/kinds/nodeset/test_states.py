"""Slurm states as conditions and counters (spec: nodeset 24.2, 24.5; 30, Q7 and Q24)."""

import msgspec
import pytest

from coil.kinds.nodeset.states import condition_changes, condition_types, count_states
from coil.kube.views import ConditionView, PodView
from tests.support.workers import pod, record

NOW = "2026-03-01T12:00:00Z"
BEFORE = "2026-03-01T11:00:00Z"
IDLE, DRAIN = "SlurmNodeStateIdle", "SlurmNodeStateDrain"


def with_conditions(*conditions: ConditionView) -> PodView:
    view = pod(0)
    status = msgspec.structs.replace(view.status, conditions=(*view.status.conditions, *conditions))
    return msgspec.structs.replace(view, status=status)


def true(kind: str, message: str = "", since: str = BEFORE) -> ConditionView:
    return ConditionView(type=kind, status="True", message=message, last_transition_time=since)


@pytest.mark.parametrize(
    ("state", "types"),
    [
        ("IDLE", ["Idle"]),
        ("MIXED+DRAIN", ["Mixed", "Drain"]),
        ("DOWN+NOT_RESPONDING+INVALID_REG", ["Down", "InvalidReg", "NotResponding"]),
        ("IDLE+DRAIN+UNDRAIN+MAINTENANCE", ["Idle", "Drain", "Maintenance", "Undrain"]),
        ("OF_THE_FUTURE", []),
    ],
)
def test_states_become_condition_types(state: str, types: list[str]) -> None:
    assert condition_types(record("gpu-0", state)) == [f"SlurmNodeState{kind}" for kind in types]


def test_an_absent_node_has_no_conditions() -> None:
    written, removed = condition_changes(with_conditions(true(IDLE)), None, NOW)
    assert (written, removed) == ((), (IDLE,))


def test_new_states_are_written_and_old_ones_removed() -> None:
    written, removed = condition_changes(with_conditions(true(IDLE)), record("gpu-0", "MIXED"), NOW)
    assert written == (true("SlurmNodeStateMixed", since=NOW),)
    assert removed == (IDLE,)


def test_an_unchanged_state_is_not_written() -> None:
    assert condition_changes(with_conditions(true(IDLE)), record("gpu-0"), NOW) == ((), ())


def test_another_reason_keeps_the_transition_time() -> None:
    view = with_conditions(true(IDLE, "a"), true(DRAIN, "a"))
    written, removed = condition_changes(view, record("gpu-0", "IDLE+DRAIN", "b"), NOW)
    assert written == (true(IDLE, "b"), true(DRAIN, "b"))
    assert removed == ()


def test_conditions_of_the_kubelet_are_never_touched() -> None:
    _, removed = condition_changes(pod(0), record("gpu-0"), NOW)
    assert "Ready" not in removed


def test_counters() -> None:
    states = ["IDLE", "IDLE+DRAIN", "ALLOCATED", "MIXED+DRAIN", "DOWN+DRAIN", "DOWN", "ERROR"]
    counts = count_states(record(f"n{number}", state) for number, state in enumerate(states))
    assert counts == {"slurm_idle": 2, "slurm_allocated": 2, "slurm_down": 2, "slurm_drain": 3}
