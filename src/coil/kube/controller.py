"""Workers that take keys from a queue and bring the world closer to what each key's object wants.

controller = Controller("nodeset-controller", reconcile, caches=[nodesets, pods])
pods.on_event(lambda change: controller.queue.add(owner_of(change)))
await controller.run()
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from structlog.contextvars import bound_contextvars

from coil.kube.queue import Queue, QueueClosedError
from coil.kube.store import Store
from coil.support import metrics
from coil.support.log import get_logger
from coil.support.objects import ObjectKey


class Done(msgspec.Struct, frozen=True):
    """The object is as wanted; the next change brings it back."""


class After(msgspec.Struct, frozen=True):
    """Done for now; look again after so many seconds even if nothing changes."""

    seconds: float


Result = Done | After
DONE = Done()

Reconcile = Callable[[ObjectKey], Awaitable[Result]]

DEADLINE = 300.0
"""Seconds a pass may take: far above the worst honest one (250 creations against a slow server)."""


class PassTimeoutError(TimeoutError):
    """A pass met its deadline and was cancelled."""


_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError)
"""Exceptions that mean the program is wrong, not the world; counted as panics."""


class Controller:
    """One reconcile function, its queue and its workers.

    A key is in one worker at a time. What the function raises is that key's error: it is logged,
    counted and retried with backoff, and touches no other key.

    Args:
        name: as in logs, metrics and events, such as `nodeset-controller`.
        reconcile: one pass over a key; must be idempotent and read from caches.
        workers: keys worked on at once.
        caches: stores that must be complete before the first pass.
        deadline: seconds a pass may take before it is cancelled, which is an error.
        queue: its queue, if not an ordinary one.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        workers: int = 1,
        caches: Sequence[Store[Any]] = (),
        deadline: float = DEADLINE,
        queue: Queue | None = None,
    ) -> None:
        self.name = name
        self.queue = Queue(name) if queue is None else queue
        self._reconcile = reconcile
        self._workers = workers
        self._caches = caches
        self._deadline = deadline
        self._log = get_logger(name)
        self._metrics = _Metrics(name)

    async def run(self) -> None:
        """Wait for the caches, then work until `stop` is called and the last pass has ended."""
        for store in self._caches:
            await store.synced.wait()
        metrics.max_concurrent_reconciles.labels(self.name).set(self._workers)
        self._log.info("workers start", workers=self._workers)
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"{self.name}/{number}")

    def stop(self) -> None:
        """Begin no more passes; `run` returns when those under way have ended."""
        self.queue.close()

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except QueueClosedError:
                return
            try:
                await self._process(key)
            finally:
                self.queue.done(key)

    async def _process(self, key: ObjectKey) -> None:
        with (
            bound_contextvars(controller=self.name, namespace=key.namespace, name=key.name),
            self._metrics.active.track_inprogress(),
            self._metrics.seconds.time(),
        ):
            try:
                result = await self._pass(key)
            except Exception as error:  # noqa: BLE001 -- a fault is one key's error, whatever it is
                self._failed(key, error)
            else:
                self._succeeded(key, result)

    async def _pass(self, key: ObjectKey) -> Result:
        deadline = asyncio.timeout(self._deadline)
        try:
            async with deadline:
                return await self._reconcile(key)
        except TimeoutError as error:
            if deadline.expired():
                raise PassTimeoutError(f"the pass did not end within {self._deadline:g} s") from error
            raise
        except asyncio.CancelledError as error:
            # A pass that awaited something cancelled is not a worker that is being cancelled: let
            # through, it would end this worker silently and for ever.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise RuntimeError("the pass was cancelled from within") from error

    def _succeeded(self, key: ObjectKey, result: Result) -> None:
        self.queue.forget(key)
        match result:
            case After(seconds=seconds):
                self._metrics.count("requeue_after")
                self.queue.add_after(key, seconds)
            case Done():
                self._metrics.count("success")

    def _failed(self, key: ObjectKey, error: Exception) -> None:
        self._metrics.count("error")
        self._metrics.errors.inc()
        if isinstance(error, PassTimeoutError):
            self._metrics.timeouts.inc()
        if fault := isinstance(error, _FAULTS):
            self._metrics.panics.inc()
        delay = self.queue.retry(key)
        self._log.error(
            "pass failed", error=str(error) or repr(error), retry_in=delay, exc_info=fault and error
        )


class _Metrics:
    """The `controller_runtime_*` series of one controller; they start at 0, so that rates are right."""

    def __init__(self, name: str) -> None:
        self.active = metrics.active_workers.labels(name)
        self.seconds = metrics.reconcile_seconds.labels(name)
        self.errors = metrics.reconcile_errors.labels(name)
        self.panics = metrics.reconcile_panics.labels(name)
        self.timeouts = metrics.reconcile_timeouts.labels(name)
        self.results = {
            result: metrics.reconciles.labels(name, result)
            for result in ("success", "requeue_after", "error")
        }
        metrics.terminal_reconcile_errors.labels(name)

    def count(self, result: str) -> None:
        self.results[result].inc()
