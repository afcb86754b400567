"""What a controller has done but its cache has not shown yet.

A pass that reads its own stale cache creates a pod twice or deletes two for one. So it notes what it
set in motion, and does not count pods again until that was observed (spec: nodeset 8.3).
"""

import time
from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet

import msgspec

from coil.support.objects import ObjectKey

EXPIRY = 55.0
"""Seconds without any progress after which a lost event no longer holds a controller back.

An object that is made and deleted while nobody watches is never shown: the list read afterwards lacks it.
I6 allows to wait 60 s for it. Each awaited event starts the count anew, so a pass that takes longer than
this, with a slow server, is still waited for.
"""


class _Pending(msgspec.Struct):
    adds: int
    deletions: set[ObjectKey]
    since: float
    """When something was last set in motion or observed."""


class Expectations:
    """Creations and deletions under way, per owner."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pending: dict[ObjectKey, _Pending] = {}

    def satisfied(self, owner: ObjectKey) -> bool:
        """Whether the cache has caught up: nothing is outstanding, or it is out for too long."""
        pending = self._pending.get(owner)
        if pending is None or self._late(pending):
            return True
        return not pending.adds and not pending.deletions

    def deletions(self, owner: ObjectKey) -> AbstractSet[ObjectKey]:
        """Objects whose deletion was set in motion and that the cache still shows as staying."""
        pending = self._pending.get(owner)
        return frozenset() if pending is None or self._late(pending) else pending.deletions

    def expect_creations(self, owner: ObjectKey, count: int) -> None:
        """`count` more objects are about to be created; call before the first request."""
        pending = self._of(owner)
        pending.adds += count
        pending.since = self._clock()

    def expect_deletions(self, owner: ObjectKey, keys: Collection[ObjectKey]) -> None:
        """Exactly these objects are about to be deleted; what was awaited before is dropped."""
        self._pending[owner] = _Pending(0, set(keys), self._clock())

    def creation_observed(self, owner: ObjectKey, count: int = 1) -> None:
        """The cache shows created objects, or their creation failed and will not show.

        More than expected does not count for later ones: a creation that timed out and was taken for failed
        may show after all.
        """
        pending = self._pending.get(owner)
        if pending is not None and pending.adds > 0 and count > 0:
            pending.adds = max(pending.adds - count, 0)
            pending.since = self._clock()

    def deletion_observed(self, owner: ObjectKey, key: ObjectKey) -> None:
        """The cache shows that the object goes, or its deletion failed; twice counts once."""
        pending = self._pending.get(owner)
        if pending is not None and key in pending.deletions:
            pending.deletions.discard(key)
            pending.since = self._clock()

    def reset(self, owner: ObjectKey) -> None:
        """Nothing is outstanding."""
        self._pending[owner] = _Pending(0, set(), self._clock())

    def forget(self, owner: ObjectKey) -> None:
        """The owner is gone."""
        self._pending.pop(owner, None)

    def _late(self, pending: _Pending) -> bool:
        return self._clock() - pending.since > EXPIRY

    def _of(self, owner: ObjectKey) -> _Pending:
        return self._pending.setdefault(owner, _Pending(0, set(), self._clock()))
