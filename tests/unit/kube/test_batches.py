"""Groups that grow while all goes well (spec: nodeset 8.4)."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coil.kube.batches import Batch, groups, slow_start


@pytest.mark.parametrize(
    ("count", "sizes"),
    [
        (0, []),
        (1, [1]),
        (2, [1, 1]),
        (7, [1, 2, 4]),
        (10, [1, 2, 4, 3]),
        (250, [1, 2, 4, 8, 16, 32, 64, 123]),
    ],
)
def test_groups_double_and_the_last_is_the_remainder(count: int, sizes: list[int]) -> None:
    assert [len(group) for group in groups(count)] == sizes


@given(st.integers(0, 3000))
def test_groups_cover_every_index_once_and_in_order(count: int) -> None:
    assert [index for group in groups(count) for index in group] == list(range(count))


class Calls:
    """Calls that take a second each and fail for some indices."""

    def __init__(self, *bad: int) -> None:
        self.bad = bad
        self.made: list[tuple[float, int]] = []

    async def __call__(self, index: int) -> None:
        self.made.append((asyncio.get_running_loop().time(), index))
        await asyncio.sleep(1)
        if index in self.bad:
            raise ValueError(index)


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_all_goes_well() -> None:
    calls = Calls()
    assert await slow_start(10, calls) == Batch(10)
    assert [int(when) for when, _ in calls.made] == [0, 1, 1, 2, 2, 2, 2, 3, 3, 3]


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_nothing_to_do_is_a_success() -> None:
    assert await slow_start(0, Calls()) == Batch(0)


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_a_refusal_of_all_costs_one_call() -> None:
    calls = Calls(*range(100))
    batch = await slow_start(100, calls)
    assert (batch.succeeded, len(calls.made)) == (0, 1)
    assert isinstance(batch.error, ValueError)


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_a_group_with_an_error_is_finished_and_is_the_last() -> None:
    calls = Calls(4)
    batch = await slow_start(100, calls)
    assert batch.succeeded == 6
    assert batch.error is not None
    assert batch.error.args == (4,)
    assert len(calls.made) == 7


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_cancelling_cancels_the_calls_under_way() -> None:
    calls = Calls()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.5):
            await slow_start(100, calls)
    assert asyncio.all_tasks() == {asyncio.current_task()}
