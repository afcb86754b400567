"""Claims about which changes bring which Tokens back, and about Tokens that want the same Secret."""

from typing import Any

import pytest
import pytest_asyncio

from coil.kinds.resources import CONTROLLERS, TOKENS
from coil.kinds.runtime import Runtime
from coil.kinds.token.observe import Observer
from coil.kinds.token.reconcile import register
from coil.kube import core
from coil.support.objects import ObjectKey
from tests.support.runtime import World, offline_runtime, put, world_of

ADA, GRACE = ObjectKey("ns", "ada"), ObjectKey("ns", "grace")
SAME = {"name": "s", "key": "k"}

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def world() -> World:
    """Two Tokens with keys of their own, already reconciled."""
    found = world_of(register)
    for name in ("ada", "grace"):
        put_token(found.runtime, name)
    found.due()
    return found


def put_token(runtime: Runtime, name: str, created: str = "", **spec: Any) -> None:
    wanted = {"jwtKeyRef": {"name": f"{name}-key", "key": "jwt.key"}, "username": name}
    put(runtime, TOKENS, name, spec={**wanted, **spec}, metadata={"creationTimestamp": created})


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
    assert world.due() == {ADA}


async def test_a_slurmctld_with_another_key_brings_back_the_tokens_signed_with_it(world: World) -> None:
    world.put(CONTROLLERS, "c", spec={"jwtKeyRef": {"name": "ada-key", "key": "jwt.key"}})
    tokens = world.runtime.clusters.put(ObjectKey("ns", "c"), "http://rest", b"old").tokens
    tokens.rotate(b"new")
    assert world.due() == set()
    tokens.taken(tokens.refused(tokens()))
    assert world.due() == {ADA}


async def test_strangers_and_metadata_bring_nothing_back(world: World) -> None:
    world.put(core.SECRETS, "stranger")
    world.put(core.SECRETS, "ada-key", data={"jwt.key": "YQ=="})
    world.due()
    world.put(core.SECRETS, "ada-key", data={"jwt.key": "YQ=="}, metadata={"labels": {"a": "b"}})
    assert world.due() == set()


async def test_a_deleted_secret_brings_its_token_back(world: World) -> None:
    world.put(core.SECRETS, "ada-jwt-ada")
    world.due()
    world.remove(core.SECRETS, "ada-jwt-ada")
    assert world.due() == {ADA}


async def test_of_tokens_that_write_to_the_same_place_the_oldest_does() -> None:
    """Otherwise the two would overwrite each other for ever."""
    runtime = offline_runtime()
    observer = Observer(runtime)
    put_token(runtime, "ada", "2026-01-02T00:00:00Z", secretRef=SAME)
    put_token(runtime, "grace", "2026-01-01T00:00:00Z", secretRef=SAME)
    first, second = observer.snapshot(GRACE), observer.snapshot(ADA)
    assert first is not None
    assert second is not None
    assert (first.rival, second.rival) == ("", "grace")
    runtime.store(TOKENS).remove(GRACE)
    alone = observer.snapshot(ADA)
    assert alone is not None
    assert alone.rival == ""


async def test_when_the_oldest_goes_the_next_one_is_brought_back(world: World) -> None:
    for name in ("ada", "grace"):
        put_token(world.runtime, name, secretRef=SAME)
    world.due()
    world.remove(TOKENS, "ada")
    assert world.due() == {ADA, GRACE}
