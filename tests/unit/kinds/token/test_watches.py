"""Claims about which changes bring which Tokens back, and about Tokens that want the same Secret."""

from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from coil.kinds.resources import TOKENS
from coil.kinds.runtime import Runtime
from coil.kinds.token.observe import Observer
from coil.kinds.token.watches import watch
from coil.kube import core
from coil.kube.queue import Queue
from coil.support.objects import ObjectKey
from tests.support.runtime import due, offline_runtime, put

ADA, GRACE = ObjectKey("ns", "ada"), ObjectKey("ns", "grace")
SAME = {"name": "s", "key": "k"}

pytestmark = pytest.mark.asyncio


class World(NamedTuple):
    runtime: Runtime
    observer: Observer
    queue: Queue

    def put(self, resource: Any, name: str, **members: Any) -> Any:
        return put(self.runtime, resource, name, **members)


@pytest_asyncio.fixture
async def world() -> World:
    """Two Tokens with keys of their own, already reconciled."""
    runtime = offline_runtime()
    observer, queue = Observer(runtime), Queue("token")
    watch(observer, queue)
    found = World(runtime, observer, queue)
    for name in ("ada", "grace"):
        put_token(found, name)
    due(queue)
    return found


def put_token(world: World, name: str, created: str = "", **spec: Any) -> None:
    wanted = {"jwtKeyRef": {"name": f"{name}-key", "key": "jwt.key"}, "username": name}
    world.put(TOKENS, name, spec={**wanted, **spec}, metadata={"creationTimestamp": created})


@pytest.mark.parametrize(
    ("resource", "name", "members"),
    [
        (TOKENS, "ada", {"status": {}}),
        (core.SECRETS, "ada-key", {}),
        (core.SECRETS, "ada-jwt-ada", {}),
    ],
)
async def test_a_token_and_both_its_secrets_bring_it_back(
    world: World, resource: Any, name: str, members: Any
) -> None:
    world.put(resource, name, **members)
    assert due(world.queue) == {ADA}


async def test_strangers_and_metadata_bring_nothing_back(world: World) -> None:
    world.put(core.SECRETS, "stranger")
    world.put(core.SECRETS, "ada-key", data={"jwt.key": "YQ=="})
    due(world.queue)
    world.put(core.SECRETS, "ada-key", data={"jwt.key": "YQ=="}, metadata={"labels": {"a": "b"}})
    assert due(world.queue) == set()


async def test_a_deleted_secret_brings_its_token_back(world: World) -> None:
    world.put(core.SECRETS, "ada-jwt-ada")
    due(world.queue)
    world.runtime.store(core.SECRETS).remove(ObjectKey("ns", "ada-jwt-ada"))
    assert due(world.queue) == {ADA}


async def test_of_tokens_that_write_to_the_same_place_the_oldest_does(world: World) -> None:
    """Otherwise the two would overwrite each other for ever."""
    put_token(world, "ada", "2026-01-02T00:00:00Z", secretRef=SAME)
    put_token(world, "grace", "2026-01-01T00:00:00Z", secretRef=SAME)
    first, second = world.observer.snapshot(GRACE), world.observer.snapshot(ADA)
    assert first is not None
    assert second is not None
    assert (first.rival, second.rival) == ("", "grace")


async def test_when_the_oldest_goes_the_next_one_is_brought_back(world: World) -> None:
    for name in ("ada", "grace"):
        put_token(world, name, secretRef=SAME)
    due(world.queue)
    world.runtime.store(TOKENS).remove(ADA)
    assert due(world.queue) == {ADA, GRACE}
    found = world.observer.snapshot(GRACE)
    assert found is not None
    assert found.rival == ""
