"""Claims about the life of Slurm clients (spec: control-plane 10, field cases CTL-11 and SEC-07)."""

import base64
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from coil.kinds.resources import CONTROLLERS, RESTAPIS
from coil.kinds.runtime import Runtime
from coil.kinds.slurmclient.reconcile import Reconciler, watch
from coil.kube import core
from coil.kube.queue import Queue
from coil.slurm.clusters import Cluster
from coil.slurm.tokens import verify
from coil.support.objects import ObjectKey
from tests.support.runtime import due, offline_runtime, put

DEMO = ObjectKey("ns", "demo")
SERVES = {"controllerRef": {"name": "demo"}}

pytestmark = pytest.mark.asyncio


class World(NamedTuple):
    runtime: Runtime
    reconciler: Reconciler
    queue: Queue

    def put(self, resource: Any, name: str, **members: Any) -> Any:
        return put(self.runtime, resource, name, **members)

    def put_key(self, key: str) -> None:
        self.put(core.SECRETS, "jwt", data={"jwt.key": base64.b64encode(key.encode()).decode()})

    def remove(self, resource: Any, name: str) -> None:
        self.runtime.store(resource).remove(ObjectKey("ns", name))

    async def cluster(self) -> Cluster | None:
        """The client after all passes that are due."""
        for key in due(self.queue):
            await self.reconciler.reconcile(key)
        return self.runtime.clusters.get(DEMO)


@pytest_asyncio.fixture
async def world() -> World:
    runtime = offline_runtime()
    found = World(runtime, Reconciler(runtime), Queue("test"))
    watch(found.reconciler, found.queue)
    found.put(CONTROLLERS, "demo", spec={"jwtKeyRef": {"name": "jwt", "key": "jwt.key"}})
    return found


async def test_a_client_exists_once_controller_restapi_and_key_do(world: World) -> None:
    assert await world.cluster() is None
    world.put(RESTAPIS, "api", spec=SERVES)
    assert await world.cluster() is None
    world.put_key("first")
    cluster = await world.cluster()
    assert cluster is not None
    assert cluster.client.base_url == "http://api-restapi.ns:6820"
    assert verify(b"first", cluster.tokens()).username == "slurm"


async def test_a_rotated_key_is_tried_once_the_former_is_refused_and_keeps_the_client(
    world: World,
) -> None:
    world.put(RESTAPIS, "api", spec=SERVES)
    world.put_key("first")
    before = await world.cluster()
    world.put_key("second")
    after = await world.cluster()
    assert after is not None
    assert after is before
    first = after.tokens()
    assert verify(b"first", first)
    assert verify(b"second", after.tokens.refused(first))


async def test_only_the_cluster_of_the_controller_is_believed(world: World) -> None:
    world.put(RESTAPIS, "api", spec=SERVES)
    world.put_key("first")
    cluster = await world.cluster()
    assert cluster is not None
    assert cluster.client.cluster == "ns_demo"
    spec = {"jwtKeyRef": {"name": "jwt", "key": "jwt.key"}, "clusterName": "larch"}
    world.put(CONTROLLERS, "demo", spec=spec)
    assert await world.cluster() is cluster
    assert cluster.client.cluster == "larch"


async def test_a_key_that_vanishes_leaves_the_client_as_it_was(world: World) -> None:
    world.put(RESTAPIS, "api", spec=SERVES)
    world.put_key("first")
    before = await world.cluster()
    world.remove(core.SECRETS, "jwt")
    assert await world.cluster() is before


async def test_the_oldest_restapi_serves_and_the_next_takes_its_place(world: World) -> None:
    world.put_key("first")
    world.put(RESTAPIS, "b", spec=SERVES, metadata={"creationTimestamp": "2026-01-01T00:00:00Z"})
    world.put(RESTAPIS, "a", spec=SERVES, metadata={"creationTimestamp": "2026-02-01T00:00:00Z"})
    first = await world.cluster()
    assert first is not None
    assert first.client.base_url == "http://b-restapi.ns:6820"
    world.remove(RESTAPIS, "b")
    second = await world.cluster()
    assert second is first
    assert first.client.base_url == "http://a-restapi.ns:6820"


async def test_without_a_restapi_or_controller_the_client_goes(world: World) -> None:
    world.put_key("first")
    world.put(RESTAPIS, "api", spec=SERVES)
    assert await world.cluster() is not None
    world.put(RESTAPIS, "api", spec={"controllerRef": {"name": "other"}})
    assert await world.cluster() is None
    world.put(RESTAPIS, "api", spec=SERVES)
    assert await world.cluster() is not None
    world.remove(CONTROLLERS, "demo")
    assert await world.cluster() is None
