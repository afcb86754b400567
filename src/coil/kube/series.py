"""Which happenings become Event objects and which only raise a count: the recorder's logic.

The same note about the same object, said again, joins a series. A topic (what happens to one object,
whatever the note says) gets at most `BURST` objects at a time; more happenings join its last series.
So a pass that is repeated for ever, or a thousand pods that start at once, cost a bounded number of
writes (I8). Differs from spec: control-plane 12, where the note is no part of the key and the
regarding object's version is: there, a second error hides behind the first, and every status write
makes old news new.
"""

from datetime import datetime
from typing import Literal

import msgspec

PERIOD = 300.0
"""Seconds between two writes of one series."""

FORGET = 900.0
"""Seconds of silence after which the same thing is news again; Events live an hour by default."""

BURST = 25
"""Event objects of one topic at a time, as many as client-go lets through at once."""

EventType = Literal["Normal", "Warning"]


class ObjectRef(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """core/v1 ObjectReference: an object that an event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""


class Topic(msgspec.Struct, frozen=True):
    """What happens, to which object, said by which controller."""

    controller: str
    regarding: ObjectRef
    type: EventType
    reason: str
    action: str


class Happening(msgspec.Struct, frozen=True):
    """A topic with its particulars; equal ones form a series."""

    topic: Topic
    related: ObjectRef | None
    note: str


class Series(msgspec.Struct):
    """One Event object. `count` happenings so far, of which `written` are known to the server."""

    happening: Happening
    name: str
    first: datetime
    last: datetime
    last_at: float
    written_at: float
    count: int = 1
    written: int = 1


class Aggregator:
    """Remembers what was said lately; `now` is in seconds of any clock that only goes forward."""

    def __init__(self) -> None:
        self._topics: dict[Topic, dict[Happening, Series]] = {}

    def observe(self, happening: Happening, name: str, moment: datetime, now: float) -> Series | None:
        """Note a happening; the series it starts under `name`, or None when it joins one."""
        known = self._topics.setdefault(happening.topic, {})
        series = known.get(happening)
        if series is None and len(known) >= BURST:
            series = next(reversed(known.values()))
        if series is None:
            known[happening] = Series(happening, name, moment, moment, now, now)
            return known[happening]
        series.count += 1
        series.last, series.last_at = moment, now
        return None

    def due(self, now: float) -> list[Series]:
        """The series whose count should be written now; forgets what has been silent for long."""
        due = [series for series in self._all() if series.count > series.written and _ripe(series, now)]
        for series in self._all():
            if now - series.last_at > FORGET and series not in due:
                self.forget(series)
        return due

    def written(self, series: Series, count: int, now: float) -> None:
        """The server knows `count` of the series' happenings."""
        series.written, series.written_at = count, now

    def forget(self, series: Series) -> None:
        """The Event object is gone or of no more interest: the next such happening is news."""
        topic = series.happening.topic
        known = self._topics.get(topic, {})
        known.pop(series.happening, None)
        if not known:
            self._topics.pop(topic, None)

    def _all(self) -> list[Series]:
        return [series for known in self._topics.values() for series in known.values()]


def _ripe(series: Series, now: float) -> bool:
    return now - series.written_at >= PERIOD
