"""Caches as a whole: many kinds, one start, one moment at which all are complete."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from coil.kube import cache
from coil.kube.cache import Caches
from coil.kube.client import Client
from coil.kube.config import ClusterConfig
from coil.kube.core import CONFIG_MAPS, NODES, PODS
from coil.support.tasks import Tasks
from tests.support.kubeserver import KubeServer, eventually, refuse

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def server() -> AsyncIterator[KubeServer]:
    async with KubeServer().running() as running:
        yield running


@pytest_asyncio.fixture
async def client(server: KubeServer) -> AsyncIterator[Client]:
    async with Client(ClusterConfig(server=server.url)) as opened:
        yield opened


def paths(server: KubeServer) -> set[str]:
    return {request.path for request in server.requests}


async def sync(caches: Caches) -> None:
    async with asyncio.timeout(5), Tasks() as tasks:
        tasks.spawn("caches", caches.run())
        await caches.sync()


async def test_a_kind_asked_for_twice_is_followed_once(server: KubeServer, client: Client) -> None:
    caches = Caches(client)
    assert caches.store(PODS) is caches.store(PODS)
    await sync(caches)
    assert server.count("list") == 1


async def test_other_selectors_make_another_store(server: KubeServer, client: Client) -> None:
    caches = Caches(client)
    assert caches.store(PODS) is not caches.store(PODS, label_selector="a=b")
    await sync(caches)
    assert server.count("list") == 2


async def test_namespaces_limit_what_is_read_and_nodes_have_none(server: KubeServer, client: Client) -> None:
    """Spec: control-plane 15.5."""
    for namespace in ("x", "y", "z"):
        await server.put("pod", namespace)
    caches = Caches(client, ["x", "y"])
    pods = caches.store(PODS)
    caches.store(NODES)
    await sync(caches)
    assert {item.metadata.namespace for item in pods.list()} == {"x", "y"}
    assert paths(server) == {"/api/v1/namespaces/x/pods", "/api/v1/namespaces/y/pods", "/api/v1/nodes"}


async def test_sync_waits_for_the_last_namespace(server: KubeServer, client: Client) -> None:
    server.on_list(refuse(500))
    caches = Caches(client, ["x", "y"])
    pods = caches.store(PODS)
    async with Tasks() as tasks:
        tasks.spawn("caches", caches.run())
        await eventually(lambda: server.count("list") == 2, "both were asked for")
        assert not pods.synced.is_set()
        assert caches.missing == ["pods"]
        await caches.sync()
        assert caches.missing == []


async def test_waiting_says_what_is_missing(
    server: KubeServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "PATIENCE", 0.01)
    server.on_list(refuse(403, "Forbidden"))
    caches = Caches(client)
    caches.store(CONFIG_MAPS)
    with capture_logs() as logs:
        await sync(caches)
    waiting = [entry["missing"] for entry in logs if entry["event"] == "waiting for caches"]
    assert waiting[0] == ["configmaps"]
    refusals = [entry for entry in logs if "Forbidden" in entry.get("error", "")]
    assert refusals, "the cause is said where it is known"


async def test_a_store_asked_for_too_late_is_refused(client: Client) -> None:
    caches = Caches(client)
    async with Tasks() as tasks:
        tasks.spawn("caches", caches.run())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="ask for the store of nodes before"):
            caches.store(NODES)


async def test_ending_the_caches_ends_every_watch(server: KubeServer, client: Client) -> None:
    caches = Caches(client)
    for resource in (PODS, NODES, CONFIG_MAPS):
        caches.store(resource)
    async with Tasks() as tasks:
        tasks.spawn("caches", caches.run())
        await eventually(lambda: server.open_watches == 3, "all are watched")
    await eventually(lambda: server.open_watches == 0, "none is watched")


async def test_waiting_for_caches_can_be_cancelled(server: KubeServer, client: Client) -> None:
    server.on_list(*[refuse(500)] * 1000)
    caches = Caches(client)
    caches.store(PODS)
    async with Tasks() as tasks:
        tasks.spawn("caches", caches.run())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await caches.sync()
