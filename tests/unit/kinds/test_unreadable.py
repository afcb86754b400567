"""Claims about which objects are looked at because they cannot be read, and what is said of them."""

import pytest

from coil.api.kinds import KINDS
from coil.kinds.resources import TOKENS
from coil.kinds.unreadable import OURS, READABLE, explain, watch
from coil.kube.queue import Queue
from coil.support.objects import ObjectKey
from tests.support.runtime import due, offline_runtime, put

KEY = ObjectKey("ns", "t")
TOLD = {"type": READABLE, "status": "False", "reason": "Unreadable", "message": "spec.username: odd"}


def test_no_kind_of_ours_is_left_out() -> None:
    assert {resource.kind for resource in OURS} == {kind.kind for kind in KINDS}


def test_the_message_begins_with_the_field() -> None:
    said = explain("Expected `str`, got `int` - at `$.spec.username`")
    assert said.startswith("spec.username: Expected `str`, got `int`; until this is corrected ")
    assert explain("JSON is malformed").startswith("JSON is malformed; until this is corrected ")


@pytest.mark.asyncio
async def test_only_objects_that_cannot_be_read_or_are_still_said_to_be_so_are_looked_at() -> None:
    runtime, queue = offline_runtime(), Queue("unreadable")
    store = runtime.store(TOKENS)
    watch(store, queue)
    put(runtime, TOKENS, "t")
    assert due(queue) == set()
    store.mark_undecodable(KEY, "odd")
    assert due(queue) == {KEY}
    put(runtime, TOKENS, "t", status={"conditions": [TOLD]})
    assert due(queue) == {KEY}
    put(runtime, TOKENS, "t", status={"conditions": [{**TOLD, "type": "Reconciled"}]})
    assert due(queue) == set()
