"""CPU time, memory and loop lag of the process that asks."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import psutil

TICK = 0.005
"""Seconds between two looks at how late the loop is."""


class Result(msgspec.Struct):
    """What one way of following a cluster costs."""

    name: str
    empty_mb: float = 0.0
    sync_cpu: float = 0.0
    memory_mb: float = 0.0
    storm_cpu: float = 0.0
    storm_wall: float = 0.0
    storm_memory_mb: float = 0.0
    passes: int = 0
    lag_p99_ms: float = 0.0


def memory_mb() -> float:
    """Resident memory, without garbage."""
    gc.collect()
    return psutil.Process().memory_info().rss / 1e6


class Lag:
    """How much later than asked the loop came back, tick by tick, as far as our own work explains it.

    On a busy machine the process also waits for other processes; that is not the loop's fault, so no
    tick counts for more than the CPU time that the process used during it.
    """

    def __init__(self) -> None:
        self._samples: list[float] = []

    @property
    def p99_ms(self) -> float:
        """The lateness that one tick in a hundred exceeds."""
        ordered = sorted(self._samples)
        return 1000 * ordered[int(len(ordered) * 0.99)] if ordered else 0.0

    @asynccontextmanager
    async def sampled(self) -> AsyncIterator[None]:
        """Sample while the block runs."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._sample())
            yield
            task.cancel()

    async def _sample(self) -> None:
        while True:
            due, worked = time.perf_counter() + TICK, time.thread_time()
            await asyncio.sleep(TICK)
            late = max(0.0, time.perf_counter() - due)
            self._samples.append(min(late, time.thread_time() - worked))
