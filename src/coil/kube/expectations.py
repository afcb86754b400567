"""What a controller has done but its cache has not shown yet.

A pass that reads its own stale cache creates a pod twice or deletes two for one. So it notes what it
set in motion, and does not count pods again until that was observed (spec: nodeset 8.3).
"""

import time
from collections.abc import Callable, Collection

import msgspec

from coil.support.objects import ObjectKey

EXPIRY = 300.0
"""Seconds after which a lost event no longer holds a controller back."""


class _Pending(msgspec.Struct):
    adds: int
    deletions: set[ObjectKey]
    since: float


class Expectations:
    """Creations and deletions under way, per owner."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pending: dict[ObjectKey, _Pending] = {}

    def satisfied(self, owner: ObjectKey) -> bool:
        """Whether the cache has caught up: nothing is outstanding, or it is out for too long."""
        pending = self._pending.get(owner)
        if pending is None or self._clock() - pending.since > EXPIRY:
            return True
        return pending.adds <= 0 and not pending.deletions

    def expect_creations(self, owner: ObjectKey, count: int) -> None:
        """`count` more objects are about to be created; call before the first request."""
        pending = self._of(owner)
        pending.adds += count
        pending.since = self._clock()

    def expect_deletions(self, owner: ObjectKey, keys: Collection[ObjectKey]) -> None:
        """Exactly these objects are about to be deleted; what was awaited before is dropped."""
        self._pending[owner] = _Pending(0, set(keys), self._clock())

    def creation_observed(self, owner: ObjectKey, count: int = 1) -> None:
        """The cache shows created objects, or their creation failed and will not show."""
        if (pending := self._pending.get(owner)) is not None:
            pending.adds -= count

    def deletion_observed(self, owner: ObjectKey, key: ObjectKey) -> None:
        """The cache shows that the object goes, or its deletion failed; twice counts once."""
        if (pending := self._pending.get(owner)) is not None:
            pending.deletions.discard(key)

    def reset(self, owner: ObjectKey) -> None:
        """Nothing is outstanding."""
        self._pending[owner] = _Pending(0, set(), self._clock())

    def forget(self, owner: ObjectKey) -> None:
        """The owner is gone."""
        self._pending.pop(owner, None)

    def _of(self, owner: ObjectKey) -> _Pending:
        return self._pending.setdefault(owner, _Pending(0, set(), self._clock()))
