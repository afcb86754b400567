"""What is not known yet is not false: a moment's patience before silence is told (invariant I8).

An operator that was just started has asked nobody yet. What the conditions said before stays until the first
answer; but not for ever, since there may be nobody to ask.
"""

import asyncio

from coil.support.objects import ObjectKey

PATIENCE_S = 5.0
"""A client is there a moment after the caches are full, and its first read takes a second at most."""


class Patience:
    """Remembers since when each object has been looked at. Use it within the event loop."""

    def __init__(self) -> None:
        self._since: dict[ObjectKey, float] = {}

    def lasts(self, key: ObjectKey) -> bool:
        """Whether the first look at the object was no longer than `PATIENCE_S` ago."""
        now = asyncio.get_running_loop().time()
        return now < self._since.setdefault(key, now) + PATIENCE_S

    def forget(self, key: ObjectKey) -> None:
        """The object is gone."""
        self._since.pop(key, None)
