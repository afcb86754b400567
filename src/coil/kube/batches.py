"""Many like requests, as many at a time as have gone well before (spec: nodeset 8.4).

A quota or an admission plugin that refuses pods refuses all: one request alone, then as many at a time as
have succeeded and one more, find that out with one request instead of thousands. A slow request holds up
nothing but its own place.
"""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

WIDTH = 32
"""Most calls under way at once: more make no server faster, and each needs a connection of its own."""


class Batch(msgspec.Struct, frozen=True):
    """How far it went. `error` is the first one, with which it stopped."""

    succeeded: int
    error: Exception | None = None


async def slow_start(count: int, call: Callable[[int], Awaitable[object]]) -> Batch:
    """Call `call(0)` to `call(count - 1)` until one has an error.

    No more are under way than have succeeded before, and one. Every call that was begun is awaited, so what
    succeeded is known; `count` minus that failed or was never tried.
    """
    ramp = _Ramp(count, call)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ramp.climb(tasks), name="batch")
    return Batch(ramp.succeeded, ramp.error)


class _Ramp:
    """Lanes that take the next call when they are done with one; each success opens a lane."""

    def __init__(self, count: int, call: Callable[[int], Awaitable[object]]) -> None:
        self.succeeded = 0
        self.error: Exception | None = None
        self._call = call
        self._indices = iter(range(count))
        self._left = count
        self._lanes = 1

    async def climb(self, tasks: asyncio.TaskGroup) -> None:
        """Work in one lane, and open others, until there is nothing left or something failed."""
        while self._left and self.error is None:
            self._left -= 1
            try:
                await self._call(next(self._indices))
            except Exception as error:  # noqa: BLE001 -- handed to the caller
                self.error = self.error or error
                return
            self.succeeded += 1
            if self._left and self._lanes < WIDTH and self.error is None:
                self._lanes += 1
                tasks.create_task(self.climb(tasks), name="batch")
