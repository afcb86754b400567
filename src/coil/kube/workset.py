"""Which keys wait, which are being worked on, and when each may be taken: the queue without a loop.

Every method gets the time, so tests and properties need none. Rules of client-go's workqueue: a key
waits once however often it is added; a key being worked on is not given out again until done, and
then again if it was added meanwhile. On top: two priorities, delays of which the smallest wins, and
rests, which make a storm of changes to one key into few passes.
"""

import heapq
from enum import IntEnum

import msgspec

from coil.support.objects import ObjectKey

EARLY = 1e-6
"""Seconds before its time at which something counts as due. Timers may fire early by the resolution of
the clock: a worker would find nothing and wait again, for ever where the clock stands still meanwhile, as
in virtual time."""


class Priority(IntEnum):
    """Ready keys of a higher priority (smaller number) are taken first."""

    CHANGE = 0
    """Something happened to the object: a user may be waiting."""
    RESYNC = 1
    """Nothing happened that we know of: retries and periodic passes."""


class Spacing(msgspec.Struct, frozen=True, gc=False):
    """How long a key rests after a pass before the next one may begin (seconds).

    A lone change is taken at once. While each pass and its rest gather `storm` changes or more (they
    come faster than passes), the rest doubles from `least` up to `most`; a rest in which nothing
    happens ends the storm. Rests follow passes, so that a slow pass cannot take all of the loop.
    """

    least: float = 0.02
    most: float = 0.5
    storm: int = 2

    def after(self, rest: float, merged: int) -> float:
        """The rest after a pass for which so many adds were merged during the rest before it."""
        if merged < self.storm:
            return self.least
        return min(self.most, max(self.least, 2 * rest))


class Item(msgspec.Struct):
    """A key that waits: given out when `due` has come and it is not in work.

    `since` is when it was first added, `adds` how often since then.
    """

    key: ObjectKey
    priority: Priority
    since: float
    due: float
    adds: int = 1


class _Work(msgspec.Struct, frozen=True, gc=False):
    since: float
    rest: float


class _Rest(msgspec.Struct, frozen=True, gc=False):
    until: float
    length: float


class _Delay(msgspec.Struct, frozen=True, gc=False):
    due: float
    priority: Priority


class WorkSet:
    """The bookkeeping of a keyed queue; see the module's text."""

    def __init__(self, spacing: Spacing | None = None) -> None:
        self._spacing = spacing or Spacing()
        self._waiting: dict[ObjectKey, Item] = {}
        self._ready: dict[Priority, dict[ObjectKey, None]] = {level: {} for level in Priority}
        self._working: dict[ObjectKey, _Work] = {}
        self._delays: dict[ObjectKey, _Delay] = {}
        self._rests: dict[ObjectKey, _Rest] = {}
        # An alarm says only "look at this key then"; one that has become pointless is harmless,
        # so nothing is ever searched for and taken out of the heap.
        self._alarms: list[tuple[float, ObjectKey]] = []

    def __len__(self) -> int:
        """Keys that are ready for a worker."""
        return sum(len(level) for level in self._ready.values())

    @property
    def working(self) -> dict[ObjectKey, float]:
        """Keys in work, with the time each was taken."""
        return {key: work.since for key, work in self._working.items()}

    def add(self, key: ObjectKey, now: float, priority: Priority = Priority.CHANGE) -> None:
        """Let the key be given out as soon as its rest allows."""
        if (item := self._waiting.get(key)) is not None:
            item.adds += 1
            self._raise(item, priority)
            return
        rest = self._rests.get(key)
        item = Item(key, priority, since=now, due=max(now, rest.until) if rest else now)
        self._waiting[key] = item
        self._settle(item, now)

    def add_after(
        self, key: ObjectKey, delay: float, now: float, priority: Priority = Priority.RESYNC
    ) -> None:
        """Add the key after `delay` seconds; of several delays of a key the smallest wins."""
        known = self._delays.get(key)
        if known is None or now + delay < known.due:
            self._delays[key] = _Delay(now + delay, priority)
            heapq.heappush(self._alarms, (now + delay, key))

    def take(self, now: float) -> Item | None:
        """Give out a key and count it as in work, or None when none is ready."""
        self._ring(now)
        for level in self._ready.values():
            for key in level:
                del level[key]
                return self._start(self._waiting.pop(key), now)
        return None

    def done(self, key: ObjectKey, now: float) -> None:
        """The work on a key is over; if it was added meanwhile it is ready again after its rest."""
        if (work := self._working.pop(key, None)) is None:
            return
        rest = self._rests[key] = _Rest(now + work.rest, work.rest)
        heapq.heappush(self._alarms, (rest.until, key))
        if (item := self._waiting.get(key)) is not None:
            item.due = rest.until
            self._settle(item, now)

    def next_due(self) -> float | None:
        """When `take` is worth calling again though nothing is added; None for never."""
        return self._alarms[0][0] if self._alarms else None

    def _start(self, item: Item, now: float) -> Item:
        last = self._rests.pop(item.key, None)
        rest = self._spacing.after(last.length if last else 0.0, item.adds)
        self._working[item.key] = _Work(now, rest)
        return item

    def _ring(self, now: float) -> None:
        while self._alarms and _due(self._alarms[0][0], now):
            self._look(heapq.heappop(self._alarms)[1], now)

    def _look(self, key: ObjectKey, now: float) -> None:
        delay = self._delays.get(key)
        if delay is not None and _due(delay.due, now):
            del self._delays[key]
            self.add(key, now, delay.priority)
        item, rest = self._waiting.get(key), self._rests.get(key)
        if item is not None:
            self._settle(item, now)
        elif rest is not None and _due(rest.until, now):
            del self._rests[key]

    def _settle(self, item: Item, now: float) -> None:
        """Make a waiting key ready if it may be; else `done` or the alarm of its rest comes back."""
        if _due(item.due, now) and item.key not in self._working:
            self._ready[item.priority][item.key] = None

    def _raise(self, item: Item, priority: Priority) -> None:
        if priority >= item.priority:
            return
        if item.key in self._ready[item.priority]:
            del self._ready[item.priority][item.key]
            self._ready[priority][item.key] = None
        item.priority = priority


def _due(when: float, now: float) -> bool:
    return when <= now + EARLY
