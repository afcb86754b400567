"""Workers and passes, in virtual time."""

import asyncio
from collections import Counter

import pytest
from prometheus_client import REGISTRY
from structlog.contextvars import get_contextvars
from structlog.testing import capture_logs

from coil.kube.controller import DONE, After, Controller, Result
from coil.kube.queue import Queue
from coil.kube.store import Store
from coil.kube.views import PodView
from coil.kube.workset import Spacing
from coil.support.backoff import Backoff
from coil.support.objects import ObjectKey
from coil.support.tasks import Tasks

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]

A, B = ObjectKey("ns", "a"), ObjectKey("ns", "b")


def now() -> float:
    return asyncio.get_running_loop().time()


def queue() -> Queue:
    return Queue("test", backoff=Backoff(base=1.0, cap=60.0, jitter=0.0), spacing=Spacing(least=0, most=0))


class Passes:
    """A reconcile function that takes `seconds` and answers what `answers` says, then DONE."""

    def __init__(self, *answers: Result | Exception, seconds: float = 0.0) -> None:
        self.answers = list(answers)
        self.seconds = seconds
        self.began: list[tuple[float, ObjectKey]] = []
        self.ended = 0
        self.running: Counter[ObjectKey] = Counter()
        self.most = 0

    async def __call__(self, key: ObjectKey) -> Result:
        self.began.append((now(), key))
        self.running[key] += 1
        assert self.running[key] == 1, "a key was in two workers"
        self.most = max(self.most, self.running.total())
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.running[key] -= 1
        self.ended += 1
        answer = self.answers.pop(0) if self.answers else DONE
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def times(self) -> list[float]:
        return [when for when, _ in self.began]


async def run_for(controller: Controller, seconds: float) -> None:
    async with Tasks() as tasks:
        tasks.spawn("controller", controller.run())
        await asyncio.sleep(seconds)


async def test_an_added_key_gets_a_pass() -> None:
    passes = Passes()
    controller = Controller("test", passes, queue=queue())
    controller.queue.add(A)
    await run_for(controller, 1)
    assert passes.began == [(0, A)]


async def test_a_key_is_in_one_worker_at_a_time_and_workers_share_the_rest() -> None:
    passes = Passes(seconds=2)
    controller = Controller("test", passes, workers=3, queue=queue())
    for key in (A, B):
        controller.queue.add(key)
    async with Tasks() as tasks:
        tasks.spawn("controller", controller.run())
        await asyncio.sleep(1)
        for key in (A, B):
            controller.queue.add(key)
        await asyncio.sleep(9)
    assert passes.times == [0, 0, 2, 2]
    assert passes.most == 2


async def test_after_brings_the_key_back() -> None:
    passes = Passes(After(30), After(5))
    controller = Controller("test", passes, queue=queue())
    controller.queue.add(A)
    await run_for(controller, 100)
    assert passes.times == [0, 30, 35]


async def test_an_error_is_retried_with_growing_delays_until_it_succeeds() -> None:
    passes = Passes(*[RuntimeError("no") for _ in range(4)])
    controller = Controller("test", passes, queue=queue())
    controller.queue.add(A)
    await run_for(controller, 100)
    assert passes.times == [0, 1, 3, 7, 15]


async def test_one_keys_error_is_not_another_keys() -> None:
    async def reconcile(key: ObjectKey) -> Result:
        if key == A:
            raise ZeroDivisionError
        done.append(key)
        return DONE

    done: list[ObjectKey] = []
    controller = Controller("test", reconcile, queue=queue())
    controller.queue.add(A)
    controller.queue.add(B)
    await run_for(controller, 1)
    assert done == [B]


async def test_a_pass_has_a_deadline() -> None:
    passes = Passes(seconds=1000)
    controller = Controller("test-deadline", passes, deadline=10, queue=queue())
    controller.queue.add(A)
    with capture_logs() as logs:
        await run_for(controller, 10.5)
    assert passes.ended == 0
    assert "did not end within 10 s" in logs[-1]["error"]
    assert sample("reconcile_timeouts_total", "test-deadline") == 1


async def test_a_timeout_inside_a_pass_is_an_ordinary_error() -> None:
    controller = Controller("test-inner", Passes(TimeoutError("slurm")), queue=queue())
    controller.queue.add(A)
    await run_for(controller, 0.5)
    assert sample("reconcile_timeouts_total", "test-inner") == 0
    assert sample("reconcile_errors_total", "test-inner") == 1


async def test_a_pass_cancelled_from_within_does_not_end_its_worker() -> None:
    """Awaiting something that was cancelled raises CancelledError in a task nobody cancelled."""
    passes: list[float] = []

    async def reconcile(_: ObjectKey) -> Result:
        passes.append(now())
        if len(passes) == 1:
            other = asyncio.get_running_loop().create_future()
            other.cancel()
            await other
        return DONE

    controller = Controller("test", reconcile, queue=queue())
    controller.queue.add(A)
    await run_for(controller, 5)
    assert passes == [0, 1]


async def test_workers_wait_for_the_caches() -> None:
    store: Store[PodView] = Store("pods")
    passes = Passes()
    controller = Controller("test", passes, caches=[store], queue=queue())
    controller.queue.add(A)
    async with Tasks() as tasks:
        tasks.spawn("controller", controller.run())
        await asyncio.sleep(60)
        assert passes.began == []
        store.complete(set())
        await asyncio.sleep(1)
    assert passes.times == [60]


async def test_stop_ends_run_when_the_pass_under_way_has_ended() -> None:
    passes = Passes(seconds=5)
    controller = Controller("test", passes, workers=2, queue=queue())
    controller.queue.add(A)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(controller.run())
        await asyncio.sleep(1)
        controller.queue.add(B)
        controller.queue.add(A)
        await asyncio.sleep(1)
        controller.stop()
        await running
    assert passes.ended == 2
    assert now() == 6


async def test_cancelling_run_cancels_the_pass() -> None:
    passes = Passes(seconds=50)
    controller = Controller("test", passes, queue=queue())
    controller.queue.add(A)
    await run_for(controller, 1)
    assert passes.running.total() == 0
    assert passes.ended == 0
    assert now() == 1


async def test_a_pass_knows_its_key_in_every_log_line() -> None:
    seen: list[dict[str, object]] = []

    async def reconcile(_: ObjectKey) -> Result:
        seen.append(get_contextvars())
        return DONE

    controller = Controller("test", reconcile, queue=queue())
    controller.queue.add(A)
    await run_for(controller, 1)
    assert seen == [{"controller": "test", "namespace": "ns", "name": "a"}]


async def test_a_pass_that_succeeds_logs_nothing() -> None:
    """A pass over an unchanged world is silent (I8)."""
    controller = Controller("test", Passes(After(1)), queue=queue())
    controller.queue.add(A)
    with capture_logs() as logs:
        await run_for(controller, 5)
    assert [entry["event"] for entry in logs] == ["workers start"]


def sample(name: str, controller: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"controller_runtime_{name}", {"controller": controller, **labels})


async def test_series_are_there_before_the_first_pass() -> None:
    """A rate over a series that appears with its first error misses that error."""
    Controller("test-zero", Passes())
    for result in ("success", "requeue_after", "error"):
        assert sample("reconcile_total", "test-zero", result=result) == 0
    for name in ("reconcile_errors_total", "reconcile_panics_total", "terminal_reconcile_errors_total"):
        assert sample(name, "test-zero") == 0


async def test_the_series_of_controller_runtime_are_kept() -> None:
    passes = Passes(DONE, After(1), RuntimeError("no"), AttributeError("bug"), seconds=0.25)
    controller = Controller("test-series", passes, workers=3, queue=queue())
    controller.queue.add(A)
    async with Tasks() as tasks:
        tasks.spawn("controller", controller.run())
        await asyncio.sleep(0.1)
        assert sample("active_workers", "test-series") == 1
        assert sample("max_concurrent_reconciles", "test-series") == 3
        for _ in range(8):
            await asyncio.sleep(2)
            controller.queue.add(A)
    assert sample("reconcile_total", "test-series", result="requeue_after") == 1
    assert sample("reconcile_total", "test-series", result="error") == 2
    assert sample("reconcile_errors_total", "test-series") == 2
    assert sample("reconcile_panics_total", "test-series") == 1
    assert sample("active_workers", "test-series") == 0
    assert sample("reconcile_time_seconds_count", "test-series") == len(passes.began)
