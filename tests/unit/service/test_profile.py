"""Claims about profiles of the running process."""

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from coil.service.profile import PROFILES


async def _get(path: str) -> str:
    response = await PROFILES[path.partition("?")[0]](make_mocked_request("GET", path))
    assert isinstance(response, web.Response)
    return response.text or ""


@pytest.mark.asyncio
async def test_the_index_names_every_path() -> None:
    text = await _get("/debug/pprof/")
    assert all(path in text for path in PROFILES)


@pytest.mark.asyncio
async def test_every_task_is_listed_with_its_stack() -> None:
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(asyncio.sleep(3600), name="a-task-that-waits")
        await asyncio.sleep(0)
        assert "a-task-that-waits" in await _get("/debug/pprof/tasks")
        waiting.cancel()


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_a_profile_lists_functions_and_only_one_is_taken_at_a_time() -> None:
    async with asyncio.TaskGroup() as group:
        first = group.create_task(_get("/debug/pprof/profile?seconds=2"))
        await asyncio.sleep(1)
        with pytest.raises(web.HTTPConflict):
            await _get("/debug/pprof/profile?seconds=1")
    assert "function calls" in first.result()


@pytest.mark.asyncio
@pytest.mark.parametrize("seconds", ["0", "61", "x", "-1"])
async def test_unreasonable_durations_are_refused(seconds: str) -> None:
    with pytest.raises(web.HTTPBadRequest):
        await _get(f"/debug/pprof/profile?seconds={seconds}")
