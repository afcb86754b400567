"""Background tasks end with their block, whatever ends it."""

import asyncio

import pytest

from coil.support.tasks import Tasks

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]


class Worker:
    """Runs until cancelled and takes a second to clean up."""

    def __init__(self) -> None:
        self.state = "new"

    async def run(self) -> None:
        self.state = "running"
        try:
            await asyncio.sleep(1000)
        finally:
            self.state = "cleaning"
            await asyncio.sleep(1)
            self.state = "clean"


async def test_leaving_the_block_ends_the_tasks_and_waits_for_their_cleanup() -> None:
    worker = Worker()
    async with Tasks() as tasks:
        tasks.spawn("worker", worker.run())
        await asyncio.sleep(1)
        assert worker.state == "running"
    assert worker.state == "clean"
    assert asyncio.get_running_loop().time() == 2


async def test_an_error_in_the_block_ends_the_tasks_and_comes_out_as_itself() -> None:
    worker = Worker()

    async def own() -> None:
        async with Tasks() as tasks:
            tasks.spawn("worker", worker.run())
            await asyncio.sleep(1)
            raise KeyError

    with pytest.raises(KeyError):
        await own()
    assert worker.state == "clean"


async def test_a_task_that_fails_ends_the_others_and_the_block() -> None:
    async def fail() -> None:
        await asyncio.sleep(1)
        raise KeyError

    async def own() -> None:
        async with Tasks() as tasks:
            tasks.spawn("fail", fail())
            tasks.spawn("worker", worker.run())
            await asyncio.sleep(100)

    worker = Worker()
    with pytest.raises(KeyError):
        await own()
    assert worker.state == "clean"
    assert asyncio.get_running_loop().time() == 2


async def test_several_errors_come_out_as_a_group() -> None:
    async def fail(error: Exception) -> None:
        raise error

    async def own() -> None:
        async with Tasks() as tasks:
            tasks.spawn("one", fail(KeyError()))
            tasks.spawn("two", fail(ValueError()))
            await asyncio.sleep(1)

    with pytest.raises(ExceptionGroup) as caught:
        await own()
    assert {type(error) for error in caught.value.exceptions} == {KeyError, ValueError}


async def test_cancelling_the_owner_ends_the_tasks() -> None:
    worker = Worker()

    async def own() -> None:
        async with Tasks() as tasks:
            tasks.spawn("worker", worker.run())
            await asyncio.sleep(1000)

    owner = asyncio.ensure_future(own())
    await asyncio.sleep(1)
    owner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await owner
    assert worker.state == "clean"


async def test_results_can_be_awaited() -> None:
    async def answer() -> int:
        return 42

    async with Tasks() as tasks:
        assert await tasks.spawn("answer", answer()) == 42


async def test_a_task_has_its_name() -> None:
    async with Tasks() as tasks:
        assert tasks.spawn("caches", asyncio.sleep(9)).get_name() == "caches"


async def test_finished_tasks_are_not_kept() -> None:
    async with Tasks() as tasks:
        for _ in range(100):
            tasks.spawn("short", asyncio.sleep(0))
        await asyncio.sleep(1)
        assert tasks._running == set()
