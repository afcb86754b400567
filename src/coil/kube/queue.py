"""A keyed queue for workers: `WorkSet` with a clock, waiting, backoff and metrics."""

import asyncio
from collections.abc import Iterable

from coil.kube.workset import Priority, Spacing, WorkSet
from coil.support import metrics
from coil.support.backoff import Backoff
from coil.support.objects import ObjectKey

RETRY = Backoff(base=0.005, cap=25.0)
"""5 ms doubling as in the reference (spec: nodeset 8.2), but not to 1000 s: I6 allows 60, and a request that
hangs when an outage ends takes 30 of them."""


class QueueClosedError(Exception):
    """The queue gives out no more keys; the worker should end."""


class Queue:
    """Keys waiting for workers.

    Handlers call `add`; a worker calls `get`, works, then `forget` or `retry`, and always `done`.

    Args:
        name: the controller's name, for metrics.
        backoff: delays of `retry`, counted per key.
        spacing: how a storm of changes to one key is thinned out.
    """

    def __init__(self, name: str, *, backoff: Backoff = RETRY, spacing: Spacing | None = None) -> None:
        self._set = WorkSet(spacing)
        self._backoff = backoff
        self._failures: dict[ObjectKey, int] = {}
        self._news = asyncio.Event()
        self._closed = False
        self._metrics = _QueueMetrics(name, self)

    def __len__(self) -> int:
        return len(self._set)

    @property
    def ages(self) -> list[float]:
        """For each key in work: seconds since it was taken."""
        try:
            now = _now()
        except RuntimeError:  # asked from outside the loop, such as by a metrics thread
            return []
        return [now - since for since in self._set.working.values()]

    def add(self, key: ObjectKey, priority: Priority = Priority.CHANGE) -> None:
        """Let the key be worked on soon; adding it many times means one pass."""
        if not self._closed:
            self._metrics.adds.inc()
            self._set.add(key, _now(), priority)
            self._news.set()

    def add_all(self, keys: Iterable[ObjectKey]) -> None:
        """Add each of the keys."""
        for key in keys:
            self.add(key)

    def add_after(self, key: ObjectKey, delay: float, priority: Priority = Priority.RESYNC) -> None:
        """Add the key after `delay` seconds; of several delays of a key the smallest wins."""
        if not self._closed:
            self._set.add_after(key, delay, _now(), priority)
            self._news.set()

    def retry(self, key: ObjectKey) -> float:
        """Add the key after a delay that grows with its failures in a row; returns that delay."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = self._backoff.delay(failures)
        self._metrics.retries.inc()
        self.add_after(key, delay)
        return delay

    def forget(self, key: ObjectKey) -> None:
        """The key succeeded: the next `retry` starts with the smallest delay."""
        self._failures.pop(key, None)

    async def get(self) -> ObjectKey:
        """Wait for a key and take it into work; QueueClosedError once the queue is closed."""
        while not self._closed:
            if (item := self._set.take(now := _now())) is not None:
                self._metrics.wait.observe(now - item.since)
                return item.key
            await self._wait()
        raise QueueClosedError

    async def _wait(self) -> None:
        self._news.clear()
        try:
            async with asyncio.timeout_at(self._set.next_due()):
                await self._news.wait()
        except TimeoutError:
            return

    def done(self, key: ObjectKey) -> None:
        """The work on the key is over, well or badly."""
        if (since := self._set.working.get(key)) is not None:
            self._metrics.work.observe(_now() - since)
        self._set.done(key, _now())
        self._news.set()

    def close(self) -> None:
        """Give out no more keys and wake all workers that wait; what they hold they may finish."""
        self._closed = True
        self._news.set()


class _QueueMetrics:
    """The `workqueue_*` series of one queue."""

    def __init__(self, name: str, queue: Queue) -> None:
        labels = (name, name)
        self.adds = metrics.queue_adds.labels(*labels)
        self.retries = metrics.queue_retries.labels(*labels)
        self.wait = metrics.queue_wait_seconds.labels(*labels)
        self.work = metrics.queue_work_seconds.labels(*labels)
        metrics.queue_depth.labels(*labels).set_function(lambda: len(queue))
        metrics.queue_unfinished_seconds.labels(*labels).set_function(lambda: sum(queue.ages))
        metrics.queue_longest_seconds.labels(*labels).set_function(lambda: max(queue.ages, default=0.0))


def _now() -> float:
    return asyncio.get_running_loop().time()
