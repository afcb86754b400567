"""Claims about when conditions are written."""

from datetime import UTC, datetime

from coil.api.controller import Controller
from coil.api.meta import Condition, ObjectMeta
from coil.kinds.status import Problem, changed, reconciled, wire

NOW = datetime(2026, 1, 2, tzinfo=UTC)
READY = Condition(type="Ready", status="True", reason="Ok", message="fine")
LIVE = Condition(
    type="Ready", status="True", reason="Ok", message="fine", last_transition_time="2026-01-01T00:00:00Z"
)
FOREIGN = Condition(type="example.org/Theirs", status="False", reason="No", message="x")


def test_equal_conditions_are_not_written() -> None:
    assert changed([FOREIGN, LIVE], [READY], NOW) is None


def test_a_new_status_gets_the_present_as_its_transition_time() -> None:
    down = Condition(type="Ready", status="False", reason="No", message="down")
    written = changed([LIVE, FOREIGN], [down], NOW)
    assert written is not None
    assert [(c.type, c.status, c.last_transition_time) for c in written] == [
        ("Ready", "False", "2026-01-02T00:00:00Z")
    ]


def test_a_new_message_keeps_the_transition_time() -> None:
    other = Condition(type="Ready", status="True", reason="Ok", message="still fine")
    written = changed([LIVE], [other], NOW)
    assert written is not None
    assert written[0].last_transition_time == LIVE.last_transition_time
    assert written[0].message == "still fine"


def test_conditions_of_others_are_never_among_those_written() -> None:
    second = Condition(type="Other", status="Unknown", reason="New", message="")
    written = changed([FOREIGN, LIVE], [READY, second], NOW)
    assert written is not None
    assert [condition.type for condition in written] == ["Ready", "Other"]


ALBA = Controller(metadata=ObjectMeta(name="alba", namespace="ns", generation=7))


def test_all_problems_are_told_under_the_first_ones_reason() -> None:
    condition = reconciled(
        ALBA,
        [
            Problem("Config", "ConfigMapMissing", "ConfigMap 'x' not found"),
            Problem("StatefulSet", "Waits", "waits for step Config"),
        ],
    )
    assert (condition.type, condition.status, condition.reason) == ("Reconciled", "False", "ConfigMapMissing")
    assert condition.message == "Config: ConfigMap 'x' not found; StatefulSet: waits for step Config"
    assert condition.observed_generation == 7


def test_without_problems_the_controller_is_reconciled() -> None:
    assert reconciled(ALBA, []).status == "True"


def test_a_condition_goes_out_whole_even_where_it_equals_a_default() -> None:
    unknown = Condition(type="Ready", status="Unknown", reason="New", message="")
    assert wire(unknown) == {
        "type": "Ready",
        "status": "Unknown",
        "reason": "New",
        "message": "",
        "lastTransitionTime": "",
        "observedGeneration": 0,
    }
