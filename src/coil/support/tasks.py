"""The one place that makes background tasks: each has a name and an owner that outlives it."""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Tasks:
    """Background tasks that live as long as an `async with` block.

    Differs from `asyncio.TaskGroup` in two points. Leaving the block ends the tasks instead of
    waiting for them. As there, a task that fails cancels the others and the block. An error alone
    comes out as itself, several as an `ExceptionGroup`.

        async with Tasks() as tasks:
            tasks.spawn("caches", caches.run())
            await serve()
    """

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._running: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.cancel()
        try:
            await self._group.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            if len(group.exceptions) == 1:
                raise group.exceptions[0] from None
            raise

    def spawn(self, name: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` in the background; its result or cancellation can be awaited."""
        task = self._group.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def cancel(self) -> None:
        """Ask every running task to end; leaving the block waits until they have."""
        for task in tuple(self._running):
            task.cancel()
