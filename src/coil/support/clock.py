"""Wall-clock times in the text forms of the Kubernetes API.

Durations inside the process are measured with the loop's or the monotonic clock, never with these.
"""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The present moment, aware of its zone."""
    return datetime.now(UTC)


def rfc3339(moment: datetime) -> str:
    """meta/v1 Time: whole seconds, as in `2026-01-31T12:00:00Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time(moment: datetime) -> str:
    """meta/v1 MicroTime, as leases and events want it: `2026-01-31T12:00:00.000000Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """Read a Time or MicroTime; ValueError when it is neither."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time {text!r} has no zone; Kubernetes times end in Z")
    return moment
