"""As many at a time as have gone well before (spec: nodeset 8.4)."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coil.kube.batches import WIDTH, Batch, slow_start


class Calls:
    """Calls that take a second each, or `slow` ones longer, and fail for some indices."""

    def __init__(self, *bad: int, slow: dict[int, float] | None = None) -> None:
        self.bad = bad
        self.slow = slow or {}
        self.made: list[tuple[float, int]] = []
        self.under_way = 0
        self.succeeded = 0
        self.excess = 0
        """Most calls under way beyond those that had succeeded."""

    async def __call__(self, index: int) -> None:
        self.made.append((asyncio.get_running_loop().time(), index))
        self.under_way += 1
        self.excess = max(self.excess, self.under_way - self.succeeded)
        await asyncio.sleep(self.slow.get(index, 1))
        self.under_way -= 1
        if index in self.bad:
            raise ValueError(index)
        self.succeeded += 1


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
async def test_no_more_are_under_way_than_make_sense() -> None:
    calls = Calls()
    assert await slow_start(40 * WIDTH, calls) == Batch(40 * WIDTH)
    times = [when for when, _ in calls.made]
    assert max(times.count(when) for when in set(times)) == WIDTH


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_a_slow_call_holds_up_nobody_else() -> None:
    calls = Calls(slow={2: 20})
    assert await slow_start(200, calls) == Batch(200)
    assert max(when for when, _ in calls.made) < 15
    assert asyncio.get_running_loop().time() == pytest.approx(21)


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_a_refusal_of_all_costs_one_call() -> None:
    calls = Calls(*range(100))
    batch = await slow_start(100, calls)
    assert (batch.succeeded, len(calls.made)) == (0, 1)
    assert isinstance(batch.error, ValueError)


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_after_an_error_what_was_begun_is_finished_and_nothing_else_is_begun() -> None:
    calls = Calls(4)
    batch = await slow_start(100, calls)
    assert batch.error is not None
    assert batch.error.args == (4,)
    assert batch.succeeded == len(calls.made) - 1
    assert calls.under_way == 0
    assert len(calls.made) <= 2 * 4 + 1


@given(st.integers(0, 300), st.sets(st.integers(0, 299), max_size=3), st.data())
def test_every_call_is_made_once_in_order_and_a_failing_server_is_spared(
    count: int, bad: set[int], data: st.DataObject
) -> None:
    slow = data.draw(st.dictionaries(st.integers(0, 299), st.floats(0.0, 0.01), max_size=5))
    calls = Calls(*bad, slow={index: slow.get(index, 0.0) for index in range(count)})
    batch = asyncio.run(slow_start(count, calls))
    assert [index for _, index in calls.made] == list(range(len(calls.made)))
    assert batch.succeeded == calls.succeeded
    assert (batch.error is None) == (bad.isdisjoint(range(count)))
    assert calls.under_way == 0
    assert calls.excess <= 1
    if batch.error is None:
        assert len(calls.made) == count


@pytest.mark.asyncio
@pytest.mark.looptime
async def test_cancelling_cancels_the_calls_under_way() -> None:
    calls = Calls()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.5):
            await slow_start(100, calls)
    assert asyncio.all_tasks() == {asyncio.current_task()}
