"""Caches, controllers, leases and events against a real kube-apiserver."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from coil.kube.cache import Caches
from coil.kube.client import Client
from coil.kube.config import load
from coil.kube.controller import DONE, Controller, Result
from coil.kube.core import CONFIG_MAPS, LEASES, NODES, PODS
from coil.kube.events import Events, reference
from coil.kube.lease import Lease, Timing
from coil.kube.resource import Resource
from coil.kube.store import Change
from coil.kube.views import ConfigMapView
from coil.support.objects import JsonObject, ObjectKey, ObjectMeta
from coil.support.tasks import Tasks
from lab.apiserver import ApiServer
from tests.support.kubeserver import eventually

pytestmark = [pytest.mark.asyncio, pytest.mark.apiserver]


@pytest_asyncio.fixture
async def client(api_server: ApiServer) -> AsyncIterator[Client]:
    async with Client(load(str(api_server.kubeconfig))) as opened:
        yield opened


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


async def test_a_cache_follows_a_namespace(client: Client, namespace: str) -> None:
    for number in range(3):
        await client.create(CONFIG_MAPS, config_map(f"m{number}", n=str(number % 2)), namespace)
    caches = Caches(client, [namespace])
    maps = caches.store(CONFIG_MAPS)
    maps.add_index("n", lambda item: [item.data.get("n", "")])
    async with Tasks() as tasks:
        tasks.spawn("caches", caches.run())
        async with asyncio.timeout(10):
            await caches.sync()
        assert len(maps.by_index("n", "0")) == 2
        await client.delete(CONFIG_MAPS, "m0", namespace)
        await client.patch(CONFIG_MAPS, "m1", {"data": {"n": "0"}}, namespace)
        await eventually(lambda: len(maps) == 2, "the deletion is seen")
        await eventually(lambda: len(maps.by_index("n", "0")) == 2, "the change is seen")


async def test_two_namespaces_make_one_cache(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("here"), namespace)
    caches = Caches(client, [namespace, "kube-system"])
    maps = caches.store(CONFIG_MAPS)
    async with Tasks() as tasks:
        tasks.spawn("caches", caches.run())
        async with asyncio.timeout(10):
            await caches.sync()
        assert maps.get(namespace, "here") is not None
        assert {item.metadata.namespace for item in maps.list()} <= {namespace, "kube-system"}


async def test_a_controller_makes_what_is_wanted(client: Client, namespace: str) -> None:
    """For each map `x-in` there shall be a map `x-out` with the same data."""
    caches = Caches(client, [namespace])
    maps = caches.store(CONFIG_MAPS)

    async def reconcile(key: ObjectKey) -> Result:
        wanted = maps.get(namespace, key.name)
        name = key.name.replace("-in", "-out")
        known = maps.get(namespace, name)
        if wanted is None and known is not None:
            await client.delete(CONFIG_MAPS, name, namespace, uid=known.metadata.uid)
        elif wanted is not None and known is None:
            await client.create(CONFIG_MAPS, config_map(name, **wanted.data), namespace)
        elif wanted is not None and known is not None and known.data != wanted.data:
            await client.patch(CONFIG_MAPS, name, {"data": wanted.data}, namespace)
        return DONE

    def enqueue(change: Change[ConfigMapView]) -> None:
        if change.key.name.endswith(("-in", "-out")):
            controller.queue.add(ObjectKey(namespace, change.key.name.replace("-out", "-in")))

    controller = Controller("copy", reconcile, workers=2, caches=[maps])
    maps.on_event(enqueue)
    async with Tasks() as tasks:
        tasks.spawn("caches", caches.run())
        tasks.spawn("controller", controller.run())
        for number in range(20):
            await client.create(CONFIG_MAPS, config_map(f"m{number}-in", v="1"), namespace)
        await eventually(lambda: outs(maps.list(namespace)) == {"1": 20}, "every map has its copy")
        await client.delete(CONFIG_MAPS, "m0-out", namespace)
        await client.patch(CONFIG_MAPS, "m1-in", {"data": {"v": "2"}}, namespace)
        await client.delete(CONFIG_MAPS, "m2-in", namespace)
        await eventually(lambda: outs(maps.list(namespace)) == {"1": 18, "2": 1}, "all is as wanted")


def outs(maps: Any) -> dict[str, int]:
    values = [item.data["v"] for item in maps if item.metadata.name.endswith("-out")]
    return {value: values.count(value) for value in set(values)}


QUICK = Timing(duration=2.0, renew=1.5, retry=0.2)


async def test_one_of_two_leads_and_the_other_takes_over_at_once_when_it_ends(
    client: Client,
    namespace: str,
) -> None:
    log: list[str] = []
    ended = {"a": asyncio.Event(), "b": asyncio.Event()}

    async def lead(name: str) -> None:
        async def work() -> None:
            log.append(f"{name} begins")
            await ended[name].wait()
            log.append(f"{name} ends")

        await Lease(client, namespace, "operator", name, QUICK).run(work)

    async with asyncio.TaskGroup() as group:
        group.create_task(lead("a"))
        await eventually(lambda: log == ["a begins"], "a leads")
        group.create_task(lead("b"))
        await asyncio.sleep(QUICK.duration + 1)
        assert log == ["a begins"], "a renews, so b waits"
        ended["a"].set()
        await eventually(lambda: "b begins" in log, "b leads", deadline=1.0)
        ended["b"].set()
    assert log == ["a begins", "a ends", "b begins", "b ends"]
    lease = await client.get(LEASES, "operator", namespace)
    assert not lease.spec.holder_identity
    assert lease.spec.lease_transitions == 1


class EventView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the tests look at in an Event."""

    metadata: ObjectMeta
    type: str
    reason: str
    action: str
    note: str = ""
    event_time: str
    reporting_controller: str
    reporting_instance: str
    regarding: JsonObject
    related: JsonObject | None = None
    series: JsonObject | None = None


EVENTS = Resource(group="events.k8s.io", plural="events", kind="Event", view=EventView)


async def test_events_are_accepted_and_complete(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a"), namespace)
    events = Events(client, "operator-0")
    recorder = events.recorder("nodeset-controller")
    about = reference(CONFIG_MAPS, made)
    recorder.event(about, "Normal", "Scheduled Update", "ScheduledUpdate", "3 pods")
    recorder.event(about, "Warning", "FailedCreate", "Create", "x" * 5000, about)
    recorder.event(about, "Normal", "", "", "")
    await events.flush()
    found = {item.reason: item for item in (await client.list_page(EVENTS, namespace)).items}
    assert set(found) == {"Scheduled Update", "FailedCreate", "Unknown"}
    plain = found["Scheduled Update"]
    assert (plain.type, plain.action, plain.note) == ("Normal", "ScheduledUpdate", "3 pods")
    assert plain.reporting_controller == "nodeset-controller"
    assert plain.regarding["uid"] == made.metadata.uid
    assert plain.regarding["kind"] == "ConfigMap"
    assert len(found["FailedCreate"].note) == 1024
    assert found["FailedCreate"].related == plain.regarding


async def test_events_about_cluster_scoped_objects_are_accepted(client: Client) -> None:
    node = await client.create(NODES, {"metadata": {"name": "runtime-n2"}})
    events = Events(client, "operator-0")
    events.recorder("c").event(reference(NODES, node), "Normal", "Seen", "See", "a node")
    await events.flush()
    page = await client.list_page(EVENTS, "default", field_selector="regarding.name=runtime-n2")
    assert [item.reason for item in page.items] == ["Seen"]
    await client.delete(NODES, "runtime-n2")


async def test_a_series_is_written_by_the_real_server_rules(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a"), namespace)
    events = Events(client, "operator-0")
    recorder = events.recorder("c")
    for _ in range(7):
        recorder.event(reference(CONFIG_MAPS, made), "Warning", "SyncFailed", "Sync", "no")
    await events.flush()
    for known in events._aggregator._topics.values():
        for series in known.values():
            series.written_at = float("-inf")
    await events._write_series()
    [event] = (await client.list_page(EVENTS, namespace)).items
    assert event.series is not None
    assert event.series["count"] == 7


async def test_pods_of_5000_bytes_are_read_from_a_real_list(client: Client, namespace: str) -> None:
    container = {"name": "c", "image": "registry.example/c:1", "env": [{"name": "X", "value": "y" * 4000}]}
    await client.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [container]}}, namespace)
    caches = Caches(client, [namespace])
    pods = caches.store(PODS)
    async with Tasks() as tasks:
        tasks.spawn("caches", caches.run())
        await eventually(lambda: len(pods) == 1, "the pod is seen")
