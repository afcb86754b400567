"""Claims about how long silence after a start is taken for "not yet"."""

import asyncio

import pytest

from coil.kinds.patience import PATIENCE_S, Patience
from coil.support.objects import ObjectKey

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]

ALBA, BRAVA = ObjectKey("ns", "alba"), ObjectKey("ns", "brava")


async def test_it_lasts_some_seconds_from_the_first_look_at_each_object() -> None:
    patience = Patience()
    assert patience.lasts(ALBA)
    await asyncio.sleep(PATIENCE_S / 2)
    assert patience.lasts(ALBA)
    assert patience.lasts(BRAVA)
    await asyncio.sleep(PATIENCE_S / 2)
    assert not patience.lasts(ALBA)
    assert patience.lasts(BRAVA)


async def test_an_object_made_anew_is_looked_at_for_the_first_time_again() -> None:
    patience = Patience()
    patience.lasts(ALBA)
    await asyncio.sleep(PATIENCE_S)
    patience.forget(ALBA)
    assert patience.lasts(ALBA)
