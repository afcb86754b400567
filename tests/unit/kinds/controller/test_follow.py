"""Claims about following the active slurmctld: who is asked, what is patched, when it is looked again."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from coil.api import keys
from coil.kinds.controller.active import WAITING_S
from coil.kinds.controller.follow import LOOK_S, Follower
from coil.kinds.controller.observe import Observer
from coil.kinds.resources import CONTROLLERS
from coil.kube import core
from coil.kube.client import Client
from coil.kube.controller import DONE, After
from coil.slurm.clusters import Clusters
from coil.slurm.http1 import Answer
from coil.support.objects import JsonObject, ObjectKey
from tests.support.runtime import offline_runtime, put

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]

ALBA = ObjectKey("ns", "alba")
HA = {"ha": {"enabled": True, "backups": 1}}


class World:
    """Two slurmctld pods, at 10.0.0.1 and 10.0.0.2, that answer with a status, or never."""

    def __init__(self, **spec: Any) -> None:
        self.runtime = offline_runtime()
        self.observer = Observer(self.runtime)
        put(self.runtime, CONTROLLERS, "alba", spec=spec)
        self.statuses: dict[str, int] = {}
        self.responding: list[bool] | None = None
        self.asked: list[str] = []
        for ordinal in (0, 1):
            self.pod(ordinal)

    def pod(self, ordinal: int, *, active: bool = False) -> None:
        labels = {keys.LABEL_NAME: keys.SLURMCTLD, keys.LABEL_INSTANCE: "alba"}
        labels |= {keys.LABEL_ACTIVE: "true"} if active else {}
        metadata = {"labels": labels, "uid": f"u{ordinal}"}
        status = {"podIP": f"10.0.0.{ordinal + 1}"}
        put(self.runtime, core.PODS, f"alba-controller-{ordinal}", metadata=metadata, status=status)

    def labelled(self) -> list[str]:
        pods = self.observer.pods.list("ns")
        return [pod.metadata.name for pod in pods if keys.LABEL_ACTIVE in pod.metadata.labels]

    async def exchange(self, host: str, port: int, request: bytes) -> Answer:
        assert port == keys.PORT_SLURMCTLD
        assert request.startswith(b"GET /readyz ")
        self.asked.append(host)
        if host not in self.statuses:
            await asyncio.sleep(3600)
        return Answer(self.statuses[host], b"")

    async def ping(self) -> list[Any]:
        return [SimpleNamespace(responding=each) for each in self.responding or ()]

    def get(self, _key: ObjectKey) -> Any:
        return None if self.responding is None else SimpleNamespace(client=self)

    async def patch(self, _resource: object, name: str, body: JsonObject, _namespace: str) -> None:
        value = body["metadata"]["labels"][keys.LABEL_ACTIVE]
        self.pod(int(name[-1]), active=value == "true")

    def follower(self) -> Follower:
        client, clusters = cast("Client", self), cast("Clusters", self)
        return Follower(self.observer, client, clusters, self.exchange)


async def test_the_label_follows_the_slurmctld_that_is_ready() -> None:
    world = World(**HA)
    follower = world.follower()
    world.statuses = {"10.0.0.1": 204, "10.0.0.2": 500}
    assert await follower.reconcile(ALBA) == After(LOOK_S)
    assert world.labelled() == ["alba-controller-0"]
    world.statuses = {"10.0.0.1": 500, "10.0.0.2": 204}
    await follower.reconcile(ALBA)
    assert world.labelled() == ["alba-controller-1"]


async def test_a_standby_gets_clients_only_when_nobody_was_active_for_a_while() -> None:
    world = World(**HA)
    follower = world.follower()
    world.statuses = {"10.0.0.1": 204, "10.0.0.2": 500}
    await follower.reconcile(ALBA)
    del world.statuses["10.0.0.1"]
    await follower.reconcile(ALBA)
    assert world.labelled() == ["alba-controller-0"]
    await asyncio.sleep(WAITING_S)
    await follower.reconcile(ALBA)
    assert world.labelled() == ["alba-controller-1"]


async def test_a_slurmctld_that_hangs_holds_up_a_look_for_a_second_only() -> None:
    world = World(**HA)
    began = asyncio.get_running_loop().time()
    await world.follower().reconcile(ALBA)
    assert asyncio.get_running_loop().time() - began < 1.1
    assert world.labelled() == ["alba-controller-0"]


async def test_slurmrestd_is_asked_when_no_slurmctld_can_be_reached() -> None:
    """A network policy may keep the operator away from them; the reference asks slurmrestd always."""
    world = World(**HA)
    world.pod(0, active=True)
    world.responding = [False, True]
    await world.follower().reconcile(ALBA)
    assert world.labelled() == ["alba-controller-1"]
    world.responding = [False, False]
    await world.follower().reconcile(ALBA)
    assert world.labelled() == ["alba-controller-1"]


async def test_without_backups_nobody_is_asked_and_no_look_is_due() -> None:
    world = World()
    assert await world.follower().reconcile(ALBA) is DONE
    assert (world.labelled(), world.asked) == (["alba-controller-0"], [])


async def test_an_external_or_absent_slurmctld_is_not_followed() -> None:
    world = World(external=True)
    assert await world.follower().reconcile(ALBA) is DONE
    assert await world.follower().reconcile(ObjectKey("ns", "gone")) is DONE
    assert world.labelled() == []
