"""Many like requests, in groups that grow while all goes well (spec: nodeset 8.4).

A quota or an admission plugin that refuses pods refuses all: groups of 1, 2, 4, ... find out with one
request instead of thousands.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import msgspec


class Batch(msgspec.Struct, frozen=True):
    """How far it went. `error` is the first one of the group that stopped it."""

    succeeded: int
    error: Exception | None = None


def groups(count: int) -> Iterator[range]:
    """The indices 0 to count - 1 in groups of 1, 2, 4, ... and the remainder."""
    start, size = 0, 1
    while start < count:
        yield range(start, min(start + size, count))
        start, size = start + size, size * 2


async def slow_start(count: int, call: Callable[[int], Awaitable[object]]) -> Batch:
    """Call `call(0)` to `call(count - 1)`, the members of a group at once, until a group has an error.

    Every call of a group is awaited, so what succeeded is known. The client bounds how many are on
    the wire. Calls that were never made are `count` minus those of the groups begun.
    """
    succeeded = 0
    for group in groups(count):
        errors = [error for error in await _group(group, call) if error is not None]
        succeeded += len(group) - len(errors)
        if errors:
            return Batch(succeeded, errors[0])
    return Batch(succeeded)


async def _group(group: range, call: Callable[[int], Awaitable[object]]) -> list[Exception | None]:
    async def attempt(index: int) -> Exception | None:
        try:
            await call(index)
        except Exception as error:  # noqa: BLE001 -- handed to the caller
            return error
        return None

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(attempt(index), name=f"batch/{index}") for index in group]
    return [task.result() for task in running]
