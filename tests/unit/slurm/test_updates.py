"""Bulk updates: every node but the refused ones is updated, in few calls."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coil.slurm.errors import ControllerDown, Rejected, SomeRefused
from coil.slurm.updates import update_each


class Server:
    """Refuses a call when one of its bad nodes is named; half of the nodes before it may be updated."""

    def __init__(self, bad: set[str]) -> None:
        self.bad = bad
        self.updated: set[str] = set()
        self.calls = 0

    async def send(self, names: Sequence[str]) -> None:
        self.calls += 1
        for name in names:
            if name in self.bad:
                raise Rejected("POST nodes/", f"not allowed for {name}")
            self.updated.add(name)


@pytest.mark.asyncio
@given(st.sets(st.integers(0, 60)), st.sets(st.integers(0, 60), max_size=5))
async def test_all_but_the_refused_are_updated(good: set[int], bad: set[int]) -> None:
    names = sorted(f"n{ordinal:02d}" for ordinal in good | bad)
    server = Server({f"n{ordinal:02d}" for ordinal in bad})
    if bad:
        with pytest.raises(SomeRefused) as caught:
            await update_each(names, server.send)
        assert caught.value.failed.keys() == server.bad
    else:
        await update_each(names, server.send)
    assert server.updated == set(names) - server.bad


@pytest.mark.asyncio
async def test_one_bad_node_among_many_costs_few_calls() -> None:
    names = [f"n{ordinal}" for ordinal in range(1024)]
    server = Server({"n700"})
    with pytest.raises(SomeRefused, match="1 nodes refused, n700: not allowed for n700"):
        await update_each(names, server.send)
    assert server.calls <= 2 * math.log2(1024) + 1


@pytest.mark.asyncio
async def test_a_failure_that_is_not_about_nodes_stops_at_once() -> None:
    calls: list[Sequence[str]] = []

    async def down(names: Sequence[str]) -> None:
        calls.append(names)
        raise ControllerDown("POST nodes/", "502")

    with pytest.raises(ControllerDown):
        await update_each(["a", "b"], down)
    assert len(calls) == 1
