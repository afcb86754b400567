"""Gaps in the way to a real kube-apiserver: what was deleted meanwhile is learnt, whatever the gap."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
import pytest_asyncio
from prometheus_client import REGISTRY

from coil.kube.client import Client
from coil.kube.config import ClusterConfig, load
from coil.kube.core import CONFIG_MAPS
from coil.kube.reflector import Reflector, Scope
from coil.kube.store import Change, Store
from coil.kube.views import ConfigMapView
from coil.support.backoff import Backoff
from coil.support.tasks import Tasks
from lab import controlplane
from lab.apiserver import ApiServer, free_ports
from lab.processes import start
from tests.support.kubeserver import eventually
from tests.support.tcpproxy import TcpProxy

pytestmark = [pytest.mark.asyncio, pytest.mark.apiserver]


class Gap:
    """A follower behind a proxy, and a client with a way of its own."""

    def __init__(self, proxy: TcpProxy, client: Client, namespace: str) -> None:
        self.proxy, self.client, self.namespace = proxy, client, namespace
        self.store: Store[ConfigMapView] = Store("configmaps")
        self.heard: list[tuple[str, str]] = []
        self.store.on_event(self._hear)

    def _hear(self, change: Change[ConfigMapView]) -> None:
        self.heard.append((change.kind.value, change.key.name))

    async def create(self, *names: str) -> None:
        for name in names:
            await self.client.create(CONFIG_MAPS, {"metadata": {"name": name}}, self.namespace)

    async def delete(self, *names: str) -> None:
        for name in names:
            await self.client.delete(CONFIG_MAPS, name, self.namespace)

    async def becomes(self, *names: str, deadline: float = 5.0) -> None:
        def equal() -> bool:
            return {item.metadata.name for item in self.store.list()} == set(names)

        await eventually(equal, f"the store holds {names}", deadline)


@pytest_asyncio.fixture
async def gap(api_server: ApiServer, namespace: str) -> AsyncIterator[Gap]:
    config = load(str(api_server.kubeconfig))
    async with (
        Client(config) as direct,
        TcpProxy(api_server.plane.ports.api).running() as proxy,
        following(Gap(proxy, direct, namespace), config) as gap,
    ):
        yield gap


@asynccontextmanager
async def following(gap: Gap, config: ClusterConfig) -> AsyncIterator[Gap]:
    behind = msgspec.structs.replace(config, server=f"https://127.0.0.1:{gap.proxy.port}")
    scope, quick = Scope(namespace=gap.namespace), Backoff(base=0.05, cap=0.2)
    async with Client(behind) as client, Tasks() as tasks:
        tasks.spawn("reflector", Reflector(client, CONFIG_MAPS, gap.store, scope, quick).run())
        await gap.create("a", "b", "c")
        await gap.becomes("a", "b", "c")
        yield gap


def lists() -> float:
    return REGISTRY.get_sample_value("coil_reflector_lists_total", {"resource": "configmaps"}) or 0.0


async def test_after_a_short_gap_the_watch_is_resumed_and_tells_all(gap: Gap) -> None:
    before = lists()
    gap.proxy.cut()
    await gap.delete("a")
    await gap.create("d")
    gap.proxy.mend()
    await gap.becomes("b", "c", "d")
    assert ("DELETED", "a") in gap.heard
    assert lists() == before, "the server still remembers: no list is needed"


async def test_a_thousand_cuts_lose_nothing(gap: Gap) -> None:
    """Well, thirty: each in the middle of whatever was going on."""
    for number in range(30):
        await gap.create(f"m{number}")
        gap.proxy.cut()
        if number % 3 == 0:
            await gap.delete(f"m{number}")
        gap.proxy.mend()
        await asyncio.sleep(0.01 * (number % 4))
    await gap.becomes("a", "b", "c", *(f"m{number}" for number in range(30) if number % 3))


async def test_an_object_made_anew_in_a_gap_is_a_deletion_and_an_addition(gap: Gap) -> None:
    gap.proxy.cut()
    await gap.delete("a")
    await gap.create("a")
    heard = len(gap.heard)
    gap.proxy.mend()
    await eventually(lambda: len(gap.heard) == heard + 2, "both are heard")
    assert gap.heard[heard:] == [("DELETED", "a"), ("ADDED", "a")]


@pytest.fixture
def another_server(api_server: ApiServer) -> controlplane.ControlPlane:
    """Not started yet: a second kube-apiserver on the same etcd. Its memory begins when it starts."""
    [port] = free_ports(1)
    plane = api_server.plane
    return dataclasses.replace(plane, ports=dataclasses.replace(plane.ports, api=port))


async def test_a_server_that_does_not_remember_the_gap_says_410_and_the_list_tells_all(
    gap: Gap, another_server: controlplane.ControlPlane
) -> None:
    before = lists()
    gap.proxy.cut()
    await gap.delete("a", "b")
    await gap.create("d")
    process = start(controlplane.apiserver(another_server), another_server.directory / "another.log")
    try:
        await eventually(lambda: controlplane.ready(another_server), "the other server is ready", 40)
        gap.proxy.mend(another_server.ports.api)
        await gap.becomes("c", "d", deadline=20)
    finally:
        process.kill()
        process.wait()
    assert {("DELETED", "a"), ("DELETED", "b")} <= set(gap.heard)
    assert gap.heard.count(("ADDED", "c")) == 1, "what stayed the same is no news"
    assert lists() == before + 1
