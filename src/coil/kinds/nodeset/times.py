"""Times of the Kubernetes API as UNIX seconds, so that plans compare numbers."""

from datetime import UTC, datetime

from coil.support.clock import parse_time, rfc3339

NEVER = 0.0
"""Absent or malformed time, which Kubernetes calls the zero time."""

MAX_TIME = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
"""The last time that RFC 3339 can write; stands for work without an end."""


def seconds(text: str | None) -> float:
    """UNIX seconds of an RFC 3339 time; `NEVER` when it is absent or malformed."""
    if not text:
        return NEVER
    try:
        return parse_time(text).timestamp()
    except (ValueError, OverflowError):
        return NEVER


def text(moment: float) -> str:
    """RFC 3339 text of UNIX seconds."""
    return rfc3339(datetime.fromtimestamp(min(moment, MAX_TIME), UTC))
