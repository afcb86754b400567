"""Claims about Tokens over hours of virtual time: never a moment without a good token."""

import asyncio
import base64
import itertools
import math
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec
import pytest
import pytest_asyncio

from coil.kinds.resources import CONTROLLERS, TOKENS
from coil.kinds.runtime import Runtime
from coil.kinds.token.observe import Observer
from coil.kinds.token.reconcile import Reconciler
from coil.kinds.token.watches import watch
from coil.kube import core
from coil.kube.client import Client
from coil.kube.config import ClusterConfig
from coil.kube.controller import After, Controller, Result
from coil.kube.errors import AlreadyExists, NotFound, Unavailable
from coil.kube.queue import Queue
from coil.kube.views import SecretView
from coil.kube.workset import Spacing
from coil.slurm.poller import Health
from coil.slurm.tokens import Claims, verify
from coil.support.backoff import Backoff
from coil.support.objects import ObjectKey
from tests.support.runtime import offline_runtime, put

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]

START = 1_800_000_000.0
KEY, NEW_KEY = b"a key that is long enough for HS256", b"the key that comes after the first one"
SECRET = ObjectKey("ns", "t-jwt-ada")
LIFE_S = 900


def clock() -> float:
    return START + asyncio.get_running_loop().time()


def queue() -> Queue:
    """All its delays are whole seconds, which virtual time can meet exactly."""
    backoff, spacing = Backoff(base=1.0, cap=60.0, jitter=0.0), Spacing(least=0.0, most=0.0)
    return Queue("token", backoff=backoff, spacing=spacing)


def whole(result: Result) -> Result:
    return After(math.ceil(result.seconds)) if isinstance(result, After) else result


def untold(*_told: object, **_more: object) -> None:
    """Events are another test's business."""


class Server(Client):
    """Holds Secrets in the caches themselves, so that every write is an event at once."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(ClusterConfig(server="http://192.0.2.1"))
        self._runtime = runtime
        self.writes: list[tuple[float, str]] = []
        self.down = False

    async def get(self, resource: Any, name: str, namespace: str | None = None) -> Any:
        found = self._runtime.store(core.SECRETS).get(namespace or "", name)
        if found is None:
            raise NotFound
        return msgspec.convert(msgspec.to_builtins(found) | {"kind": "Secret"}, resource.view)

    async def create(self, resource: Any, body: Any, namespace: str | None = None, **_: Any) -> Any:
        self._write("create")
        name = body["metadata"]["name"]
        if self._runtime.store(core.SECRETS).get(namespace or "", name) is not None:
            raise AlreadyExists
        text = {key: base64.b64encode(value.encode()).decode() for key, value in body["stringData"].items()}
        put(self._runtime, core.SECRETS, name, data=text, metadata=body["metadata"])
        return await self.get(resource, name, namespace)

    async def patch(self, resource: Any, name: str, body: Any, namespace: str | None = None, **_: Any) -> Any:
        if resource is TOKENS:
            return None
        self._write("patch")
        live = msgspec.to_builtins(await self.get(core.SECRETS, name, namespace))
        put(self._runtime, core.SECRETS, name, data={**live["data"], **body["data"]})
        return None

    def _write(self, verb: str) -> None:
        if self.down:
            raise Unavailable(message="down")
        self.writes.append((clock() - START, verb))


class World(NamedTuple):
    runtime: Runtime
    server: Server

    def claims(self, key: bytes = KEY) -> Claims:
        """What the stored token says; an error when the key did not sign it."""
        secret = self.runtime.store(core.SECRETS).get(*SECRET)
        assert secret is not None
        return verify(key, secret.data["SLURM_JWT"].decode())

    def put_key(self, key: bytes) -> SecretView:
        data = {"jwt.key": base64.b64encode(key).decode()}
        return put(self.runtime, core.SECRETS, "jwt", data=data, metadata={"uid": "k"})

    def put_token(self, **spec: Any) -> None:
        ref = {"name": "jwt", "key": "jwt.key"}
        put(self.runtime, TOKENS, "t", spec={"jwtKeyRef": ref, "username": "ada", **spec})


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    """A running token controller over caches with one key and one Token."""
    runtime = offline_runtime()
    server, observer = Server(runtime), Observer(runtime)
    reconciler = Reconciler(observer, server, untold, clock)

    async def reconcile(key: ObjectKey) -> Result:
        return whole(await reconciler.reconcile(key))

    controller = Controller("token", reconcile, caches=observer.stores, queue=queue())
    watch(observer, controller.queue)
    for store in observer.stores:
        store.synced.set()
    found = World(runtime, server)
    found.put_key(KEY)
    found.put_token()
    running = asyncio.create_task(controller.run())
    yield found
    controller.stop()
    await running


async def test_every_token_is_renewed_when_a_fifth_of_its_life_is_left(world: World) -> None:
    """Ten hours: one write in 12 minutes, and at any moment at least 3 minutes of life."""
    for _ in range(600):
        await asyncio.sleep(60)
        assert world.claims().expires_at - clock() >= LIFE_S / 5 - 2
    times = [moment for moment, _ in world.server.writes]
    assert [verb for _, verb in world.server.writes] == ["create"] + ["patch"] * (len(times) - 1)
    assert len(times) - 36_000 // 720 in (0, 1)
    assert all(719 <= after - before <= 722 for before, after in itertools.pairwise(times))


async def test_a_rotated_key_makes_a_new_token_at_once(world: World) -> None:
    await asyncio.sleep(100)
    world.put_key(NEW_KEY)
    await asyncio.sleep(1)
    assert world.claims(NEW_KEY).issued_at == int(START + 100)


async def test_holders_get_the_new_token_when_slurmctld_takes_it_and_not_before(world: World) -> None:
    """Until then only a token of the former key is good for anything; it is renewed if need be."""
    put(world.runtime, CONTROLLERS, "c", spec={"jwtKeyRef": {"name": "jwt", "key": "jwt.key"}})
    cluster = world.runtime.clusters.put(ObjectKey("ns", "c"), "http://rest", KEY)
    cluster.poller.health = Health(None, 0.0)
    await asyncio.sleep(100)
    cluster.tokens.rotate(NEW_KEY)
    world.put_key(NEW_KEY)
    await asyncio.sleep(1000)
    assert [verb for _, verb in world.server.writes] == ["create", "patch"]
    assert clock() - world.claims(KEY).issued_at < LIFE_S * 0.8
    cluster.tokens.taken(cluster.tokens.refused(cluster.tokens()))
    await asyncio.sleep(1)
    assert world.claims(NEW_KEY).issued_at == int(START + 1100)


async def test_while_no_slurmctld_answers_the_key_of_the_secret_counts(world: World) -> None:
    put(world.runtime, CONTROLLERS, "c", spec={"jwtKeyRef": {"name": "jwt", "key": "jwt.key"}})
    world.runtime.clusters.put(ObjectKey("ns", "c"), "http://rest", KEY)
    await asyncio.sleep(100)
    world.put_key(NEW_KEY)
    await asyncio.sleep(1)
    assert world.claims(NEW_KEY).issued_at == int(START + 100)


async def test_a_deleted_secret_comes_back_at_once(world: World) -> None:
    await asyncio.sleep(100)
    world.runtime.store(core.SECRETS).remove(SECRET)
    await asyncio.sleep(1)
    assert world.claims().issued_at == int(START + 100)


async def test_a_changed_lifetime_takes_effect_at_once(world: World) -> None:
    await asyncio.sleep(100)
    world.put_token(lifetime="1h")
    await asyncio.sleep(1)
    claims = world.claims()
    assert claims.expires_at - claims.issued_at == 3600
    await asyncio.sleep(2870)
    assert len(world.server.writes) == 2
    await asyncio.sleep(20)
    assert len(world.server.writes) == 3


async def test_a_server_that_is_down_when_a_token_is_due_costs_no_token_its_life(world: World) -> None:
    """Tries go on with backoff; there are three minutes for it."""
    await asyncio.sleep(700)
    world.server.down = True
    await asyncio.sleep(100)
    world.server.down = False
    await asyncio.sleep(61)
    assert world.claims().expires_at - clock() > LIFE_S / 5


async def test_a_token_without_refresh_is_left_to_expire(world: World) -> None:
    await asyncio.sleep(10)
    world.put_token(refresh=False)
    await asyncio.sleep(3600)
    assert world.claims().expired(clock())
    assert len(world.server.writes) == 1


async def test_a_token_waits_for_its_key(world: World) -> None:
    await asyncio.sleep(10)
    world.runtime.store(core.SECRETS).remove(ObjectKey("ns", "jwt"))
    world.runtime.store(core.SECRETS).remove(SECRET)
    await asyncio.sleep(1000)
    assert len(world.server.writes) == 1
    world.put_key(NEW_KEY)
    await asyncio.sleep(1)
    assert world.claims(NEW_KEY).issued_at == int(START + 1010)
