"""The queue in virtual time: waiting, waking, backoff, closing."""

import asyncio

import pytest
from prometheus_client import REGISTRY

from coil.kube.queue import RETRY, Queue, QueueClosedError
from coil.kube.workset import Spacing
from coil.support.backoff import Backoff
from coil.support.objects import ObjectKey

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]

A, B = ObjectKey("ns", "a"), ObjectKey("ns", "b")


def now() -> float:
    return asyncio.get_running_loop().time()


def queue(name: str = "test", **options: object) -> Queue:
    return Queue(name, spacing=Spacing(least=0.0, most=0.0), **options)  # type: ignore[arg-type]


async def test_get_wakes_when_a_key_is_added() -> None:
    keys = queue()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(keys.get())
        await asyncio.sleep(3)
        keys.add(A)
    assert waiting.result() == A
    assert now() == 3


async def test_get_wakes_when_a_delay_ends() -> None:
    keys = queue()
    keys.add_after(A, 30)
    assert await keys.get() == A
    assert now() == 30


async def test_a_smaller_delay_given_while_a_worker_waits_is_kept() -> None:
    keys = queue()
    keys.add_after(A, 30)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(keys.get())
        await asyncio.sleep(1)
        keys.add_after(A, 2)
    assert waiting.result() == A
    assert now() == 3


async def test_done_lets_another_worker_have_the_key() -> None:
    keys = queue()
    keys.add(A)
    await keys.get()
    keys.add(A)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(keys.get())
        await asyncio.sleep(5)
        assert not waiting.done()
        keys.done(A)
    assert waiting.result() == A


async def test_two_workers_get_two_keys() -> None:
    keys = queue()
    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(keys.get()) for _ in range(2)]
        await asyncio.sleep(1)
        keys.add(A)
        keys.add(B)
    assert {worker.result() for worker in workers} == {A, B}


async def test_a_delay_finer_than_the_clock_ends_too() -> None:
    """The loop wakes at the nearest moment its clock knows, which may be before the key is due."""
    keys = queue()
    async with asyncio.timeout(1):
        for number in range(200):
            keys.add_after(A, 0.001 + number * 1.23e-7)
            keys.done(await keys.get())


async def test_retries_grow_and_a_success_starts_over() -> None:
    keys = queue(backoff=Backoff(base=1.0, cap=8.0, jitter=0.0))
    assert [keys.retry(A) for _ in range(5)] == [1.0, 2.0, 4.0, 8.0, 8.0]
    assert keys.retry(B) == 1.0
    keys.forget(A)
    assert keys.retry(A) == 1.0


async def test_no_retry_is_later_than_invariant_6_allows() -> None:
    assert max(RETRY.delay(failures) for failures in range(100)) <= 60.0


async def test_closing_wakes_and_ends_every_worker() -> None:
    keys = queue()
    keys.add_after(A, 30)
    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(until_closed(keys)) for _ in range(3)]
        await asyncio.sleep(1)
        keys.close()
    assert all(worker.result() for worker in workers)
    assert now() == 1


async def until_closed(keys: Queue) -> bool:
    with pytest.raises(QueueClosedError):
        await keys.get()
    return True


async def test_a_closed_queue_takes_no_more_keys() -> None:
    keys = queue()
    keys.close()
    keys.add(A)
    keys.add_after(A, 1)
    keys.retry(A)
    assert len(keys) == 0
    assert await until_closed(keys)


async def test_a_cancelled_worker_leaves_its_key_to_others() -> None:
    keys = queue()
    waiting = asyncio.ensure_future(keys.get())
    await asyncio.sleep(1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    keys.add(A)
    assert await keys.get() == A


async def test_a_cancellation_that_meets_a_due_delay_is_not_swallowed() -> None:
    """Both fall on the same moment: the worker must still end."""
    keys = queue()
    keys.add_after(A, 1)
    worker = asyncio.ensure_future(take_for_ever(keys))
    asyncio.get_running_loop().call_at(1, worker.cancel)
    with pytest.raises(asyncio.CancelledError):
        await worker


async def take_for_ever(keys: Queue) -> None:
    while True:
        keys.done(await keys.get())


async def test_the_series_of_client_go_are_kept() -> None:
    keys = queue("series-test")
    labels = {"name": "series-test", "controller": "series-test"}

    def value(name: str) -> float | None:
        return REGISTRY.get_sample_value(f"workqueue_{name}", labels)

    keys.add(A)
    keys.add(B)
    assert value("depth") == 2
    key = await keys.get()
    await asyncio.sleep(4)
    assert value("longest_running_processor_seconds") == 4
    assert value("unfinished_work_seconds") == 4
    keys.done(key)
    keys.retry(key)
    assert value("adds_total") == 2
    assert value("retries_total") == 1
    assert value("work_duration_seconds_sum") == 4
    assert value("queue_duration_seconds_count") == 1
