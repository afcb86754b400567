"""Which happenings are news (I8)."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coil.kube.series import BURST, FORGET, PERIOD, Aggregator, Happening, ObjectRef, Series, Topic

MOMENT = datetime(2026, 1, 31, 12, tzinfo=UTC)
NODESET = ObjectRef(api_version="v1", kind="NodeSet", name="workers", namespace="slurm", uid="u1")


def happening(note: str = "creating 3 pods", reason: str = "ScalingUp", related: str = "") -> Happening:
    topic = Topic("nodeset-controller", NODESET, "Normal", reason, "ScaleUp")
    pod = ObjectRef(api_version="v1", kind="Pod", name=related, namespace="slurm") if related else None
    return Happening(topic, pod, note)


@pytest.fixture
def seen() -> Aggregator:
    return Aggregator()


def observe(seen: Aggregator, what: Happening, now: float) -> Series | None:
    return seen.observe(what, f"event-{now}", MOMENT, now)


def test_the_first_time_is_news(seen: Aggregator) -> None:
    series = observe(seen, happening(), 0)
    assert series is not None
    assert series.name == "event-0"


def test_the_same_again_is_counted(seen: Aggregator) -> None:
    first = observe(seen, happening(), 0)
    assert observe(seen, happening(), 1) is None
    assert first is not None
    assert first.count == 2


def test_another_note_reason_or_object_is_news(seen: Aggregator) -> None:
    observe(seen, happening(), 0)
    assert observe(seen, happening(note="creating 5 pods"), 1)
    assert observe(seen, happening(reason="ScalingDown"), 1)
    assert observe(seen, happening(related="pod-1"), 1)


def test_a_flood_of_one_topic_makes_so_many_objects_and_no_more(seen: Aggregator) -> None:
    made = [observe(seen, happening(related=f"pod-{number}"), 0) for number in range(1000)]
    series = [one for one in made if one is not None]
    assert len(series) == BURST
    assert series[-1].count == 1 + 1000 - BURST


def test_a_flood_of_one_topic_hides_no_other(seen: Aggregator) -> None:
    for number in range(1000):
        observe(seen, happening(related=f"pod-{number}"), 0)
    assert observe(seen, happening(reason="FailedCreate"), 0)


def test_a_count_is_written_once_in_a_period(seen: Aggregator) -> None:
    """A pass every 30 s that says the same costs one write in five minutes."""
    observe(seen, happening(), 0)
    writes = 0
    for second in range(0, int(10 * PERIOD), 30):
        observe(seen, happening(), second)
        for series in seen.due(second):
            seen.written(series, series.count, second)
            writes += 1
    assert writes == 9


def test_a_count_the_server_knows_is_not_written_again(seen: Aggregator) -> None:
    observe(seen, happening(), 0)
    assert seen.due(PERIOD) == []


def test_after_a_long_silence_the_same_is_news(seen: Aggregator) -> None:
    observe(seen, happening(), 0)
    seen.due(FORGET + 1)
    assert observe(seen, happening(), FORGET + 2)


def test_a_last_count_is_written_before_a_series_is_forgotten(seen: Aggregator) -> None:
    observe(seen, happening(), 0)
    observe(seen, happening(), 1)
    [series] = seen.due(FORGET + 2)
    seen.written(series, series.count, FORGET + 2)
    assert seen.due(FORGET + 3) == []
    assert seen._topics == {}


def test_forgetting_what_is_not_known_is_harmless(seen: Aggregator) -> None:
    series = observe(seen, happening(), 0)
    assert series is not None
    seen.forget(series)
    seen.forget(series)
    assert observe(seen, happening(), 1)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 60)), max_size=200))
def test_every_happening_is_counted_somewhere(calls: list[tuple[str, float]]) -> None:
    seen, now, made = Aggregator(), 0.0, []
    for note, pause in calls:
        now += pause
        if (series := observe(seen, happening(note), now)) is not None:
            made.append(series)
        for due in seen.due(now):
            seen.written(due, due.count, now)
    assert sum(series.count for series in made) == len(calls)
    assert all(series.written <= series.count for series in made)
