from datetime import UTC, datetime, timedelta, timezone

import pytest
import time_machine

from coil.support.clock import micro_time, parse_time, rfc3339, utc_now

MOMENT = datetime(2026, 1, 31, 12, 0, 5, 1234, tzinfo=UTC)


def test_times_have_the_forms_of_the_api() -> None:
    assert rfc3339(MOMENT) == "2026-01-31T12:00:05Z"
    assert micro_time(MOMENT) == "2026-01-31T12:00:05.001234Z"


def test_other_zones_are_written_as_utc() -> None:
    there = MOMENT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert rfc3339(there) == "2026-01-31T12:00:05Z"


def test_what_is_written_can_be_read() -> None:
    assert parse_time(micro_time(MOMENT)) == MOMENT
    assert parse_time(rfc3339(MOMENT)) == MOMENT.replace(microsecond=0)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-31T12:00:05"])
def test_what_is_no_kubernetes_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"time|Invalid isoformat"):
        parse_time(text)


@time_machine.travel(MOMENT, tick=False)
def test_now_is_now_in_utc() -> None:
    assert utc_now() == MOMENT
