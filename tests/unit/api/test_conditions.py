"""Conditions are set without changing what was there."""

from coil.api import conditions
from coil.api.meta import Condition

OLD = Condition(type="Ready", status="True", reason="Up", last_transition_time="2026-01-01T00:00:00Z")
OTHER = Condition(type="Other", status="False", reason="No", last_transition_time="2026-01-01T00:00:00Z")
NOW = "2026-02-02T00:00:00Z"


def test_a_new_condition_gets_the_time_and_goes_last() -> None:
    got = conditions.with_condition([OTHER], Condition(type="Ready", status="True", reason="Up"), NOW)
    assert [condition.type for condition in got] == ["Other", "Ready"]
    assert got[1].last_transition_time == NOW


def test_the_time_stays_while_the_status_does() -> None:
    wanted = Condition(type="Ready", status="True", reason="Still", message="m")
    (got,) = conditions.with_condition([OLD], wanted, NOW)
    assert (got.reason, got.last_transition_time) == ("Still", OLD.last_transition_time)


def test_a_changed_status_gets_a_new_time_in_place() -> None:
    before = [OLD, OTHER]
    got = conditions.with_condition(before, Condition(type="Ready", status="False", reason="Down"), NOW)
    assert [(condition.type, condition.status) for condition in got] == [
        ("Ready", "False"),
        ("Other", "False"),
    ]
    assert got[0].last_transition_time == NOW
    assert before == [OLD, OTHER]


def test_a_time_that_is_given_is_kept() -> None:
    wanted = Condition(
        type="Ready", status="False", reason="Down", last_transition_time="2026-01-15T00:00:00Z"
    )
    (got,) = conditions.with_condition([OLD], wanted, NOW)
    assert got.last_transition_time == "2026-01-15T00:00:00Z"


def test_find_and_remove() -> None:
    assert conditions.find([OTHER, OLD], "Ready") is OLD
    assert conditions.find([], "Ready") is None
    assert conditions.without_condition([OLD, OTHER], "Ready") == [OTHER]
