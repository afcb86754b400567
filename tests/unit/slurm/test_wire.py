"""What the states of nodes and jobs mean."""

import pytest

from coil.slurm.wire import FOREVER_S, Number, SlurmJob, SlurmNode, number


def node(*state: str, reason: str = "") -> SlurmNode:
    return SlurmNode(name="n", state=frozenset(state), reason=reason)


def job(*state: str, nodes: str = "n[1-2]", start: int = 0, limit: Number | None = None) -> SlurmJob:
    return SlurmJob(
        job_id=1, state=frozenset(state), nodes=nodes, start_time=number(start), time_limit=limit or Number()
    )


@pytest.mark.parametrize(
    ("state", "drained"),
    [
        (("IDLE", "DRAIN"), True),
        (("DOWN", "DRAIN"), True),
        (("ALLOCATED", "DRAIN"), False),
        (("MIXED", "DRAIN"), False),
        (("IDLE", "COMPLETING", "DRAIN"), False),
        (("IDLE", "DRAIN", "UNDRAIN"), False),
        (("IDLE",), False),
        (("ALLOCATED", "COMPLETING"), False),
    ],
)
def test_drained(state: tuple[str, ...], drained: bool) -> None:
    """Field case DRN-07, spec: nodeset 32."""
    assert node(*state).drained is drained


def test_draining_is_drain_with_work_left() -> None:
    assert node("MIXED", "DRAIN").draining
    assert not node("IDLE", "DRAIN").draining
    assert not node("MIXED").draining


@pytest.mark.parametrize(("reason", "ours"), [("", True), ("slurm-operator: x", True), ("bad disk", False)])
def test_ours(reason: str, ours: bool) -> None:
    assert node("IDLE", reason=reason).ours is ours


def test_the_base_state_is_the_first_that_matches() -> None:
    assert node("DRAIN", "IDLE", "CLOUD").base_state == "IDLE"
    assert node("UNKNOWN", "ALLOCATED").base_state == "ALLOCATED"
    assert node("SOMETHING_NEW").base_state == ""


@pytest.mark.parametrize(
    ("state", "holds"),
    [
        (("RUNNING",), True),
        (("SUSPENDED",), True),
        (("RUNNING", "CONFIGURING"), True),
        (("CANCELLED", "COMPLETING"), True),
        (("A_STATE_OF_A_LATER_SLURM",), True),
        (("PENDING",), False),
        (("COMPLETED",), False),
        (("NODE_FAIL",), False),
        (("PENDING", "REQUEUED"), False),
    ],
)
def test_a_job_holds_its_nodes_until_it_surely_does_not(state: tuple[str, ...], holds: bool) -> None:
    assert job(*state).holds_nodes is holds
    assert not job(*state, nodes="").holds_nodes


@pytest.mark.parametrize(
    ("limit", "deadline"),
    [
        (number(10), 1600),
        (Number(infinite=True), 1000 + FOREVER_S),
        (Number(), 1000),
        (Number(number=5), 1000),
    ],
)
def test_deadline(limit: Number, deadline: int) -> None:
    assert job("RUNNING", start=1000, limit=limit).deadline == deadline
