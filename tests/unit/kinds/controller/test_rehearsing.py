"""Claims about a whole trial: what is made, what is remembered on objects, what is left behind."""

import asyncio
from typing import Any, cast

import msgspec
import pytest

from coil.api import keys
from coil.kinds.controller import plan
from coil.kinds.controller.rehearsal import RETRY_S, Verdict
from coil.kinds.controller.rehearsing import Rehearsing
from coil.kinds.controller.snapshot import Children, Snapshot
from coil.kinds.steps import Apply
from coil.kube.client import Client
from coil.kube.errors import AlreadyExists, Forbidden
from coil.kube.resource import Resource
from coil.kube.views import ManifestView, PodView
from coil.support.clock import rfc3339, utc_now
from coil.support.objects import JsonObject
from tests.unit.kinds.controller.test_plan import controller, live, planned, snapshot

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]

CTLD: dict[str, Any] = {
    "metadata": {"name": "alba-controller-0"},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}


class World:
    """An API server with one Controller, whose slurmctld runs with `MaxJobCount=1`."""

    def __init__(self) -> None:
        before = planned(snapshot(controller=controller(extraConf="MaxJobCount=1")))
        self.children = Children(config=live(before["Config"]), stateful_set=live(before["StatefulSet"]))
        self.pods: dict[str, PodView] = {}
        self.candidate: ManifestView | None = None
        self.full = False
        self.made: list[str] = []
        self.deleted: list[str] = []
        self.extra_conf = "MaxJobCount=2"

    async def create(self, _res: Any, body: JsonObject, _namespace: str, *, field_manager: str) -> None:
        assert field_manager
        name = body["metadata"]["name"]
        if self.full:
            raise Forbidden(403, "Forbidden", "exceeded quota: pods")
        if name in self.pods:
            raise AlreadyExists(409, "AlreadyExists", name)
        self.made.append(name)
        metadata = {**body["metadata"], "creationTimestamp": rfc3339(utc_now())}
        self.pods[name] = msgspec.convert({"metadata": metadata, "status": {"phase": "Pending"}}, PodView)

    async def patch(self, _res: Any, _name: str, body: JsonObject, _namespace: str, **_how: Any) -> None:
        self.candidate = msgspec.convert(body, ManifestView)

    async def delete(self, resource: Resource[Any], name: str, _namespace: str, **_how: Any) -> None:
        self.deleted.append(name)
        if resource.kind == "Pod":
            del self.pods[name]
        else:
            self.candidate = None

    def end(self, code: int, message: str = "") -> None:
        """The pod's slurmctld has ended."""
        (name,) = self.pods
        state = {"terminated": {"exitCode": code, "message": message}}
        status = {"phase": "Failed", "containerStatuses": [{"name": "slurmctld", "state": state}]}
        meta = msgspec.to_builtins(self.pods[name].metadata)
        self.pods[name] = msgspec.convert({"metadata": meta, "status": status}, PodView)

    def snapshot(self) -> Snapshot:
        return snapshot(
            controller=controller(extraConf=self.extra_conf),
            live=self.children,
            pods=(msgspec.convert(CTLD, PodView),),
            candidate=self.candidate,
            rehearsals=tuple(self.pods.values()),
        )

    def rehearsing(self) -> Rehearsing:
        return Rehearsing(cast("Client", self))

    async def step(self, rehearsing: Rehearsing) -> Verdict:
        given = self.snapshot()
        verdict = await rehearsing.step(given, plan.config_step(given))
        assert verdict is not None
        return verdict

    async def until_begun(self, rehearsing: Rehearsing) -> Verdict:
        hold = await self.step(rehearsing)
        assert not self.made
        await asyncio.sleep(hold.again_s or 0)
        return await self.step(rehearsing)


async def test_an_accepted_configuration_is_written_and_leaves_nothing_behind() -> None:
    world = World()
    rehearsing = world.rehearsing()
    assert not (await world.until_begun(rehearsing)).open
    assert not (await world.step(rehearsing)).open
    world.end(0)
    verdict = await world.step(rehearsing)
    assert (verdict.open, verdict.tried) == (True, True)
    given = world.snapshot()
    world.children = msgspec.structs.replace(world.children, config=live(plan.config_step(given)))
    assert await world.step(rehearsing) == Verdict(generation=verdict.generation, open=True)
    assert (len(world.made), world.pods, world.candidate) == (1, {}, None)


async def test_a_refused_one_is_not_tried_again_also_after_a_restart_of_the_operator() -> None:
    world = World()
    rehearsing = world.rehearsing()
    await world.until_begun(rehearsing)
    world.end(1, "[x] fatal: no")
    for each in (rehearsing, rehearsing, world.rehearsing()):
        verdict = await world.step(each)
        assert (verdict.open, verdict.reason, verdict.message) == (False, "RefusedBySlurmctld", "no")
    assert (len(world.made), world.pods) == (1, {})
    assert world.candidate is not None
    # Mended: tried by itself.
    world.extra_conf = "MaxJobCount=3"
    hold = await world.step(rehearsing)
    await asyncio.sleep(hold.again_s or 0)
    await world.step(rehearsing)
    world.end(0)
    assert (await world.step(rehearsing)).open


async def test_back_to_what_is_live_needs_no_trial_and_clears_the_refusal() -> None:
    world = World()
    rehearsing = world.rehearsing()
    await world.until_begun(rehearsing)
    world.end(1)
    await world.step(rehearsing)
    world.extra_conf = "MaxJobCount=1"
    assert (await world.step(rehearsing)).open
    assert (world.candidate, len(world.made)) == (None, 1)


async def test_a_change_during_a_trial_replaces_it() -> None:
    world = World()
    rehearsing = world.rehearsing()
    await world.until_begun(rehearsing)
    world.extra_conf = "MaxJobCount=3"
    hold = await world.step(rehearsing)
    await asyncio.sleep(hold.again_s or 0)
    await world.step(rehearsing)
    assert (len(world.made), world.deleted) == (2, world.made[:1])
    assert list(world.pods) == world.made[1:]


async def test_a_burst_of_changes_is_one_trial() -> None:
    world = World()
    rehearsing, hold = world.rehearsing(), Verdict(generation="")
    for number in range(2, 7):
        world.extra_conf = f"MaxJobCount={number}"
        hold = await world.step(rehearsing)
        await asyncio.sleep(0.1)
    await asyncio.sleep(hold.again_s or 0)
    await world.step(rehearsing)
    assert len(world.made) == 1


async def test_a_pod_that_cannot_be_made_is_told_and_tried_again_later() -> None:
    world = World()
    rehearsing, world.full = world.rehearsing(), True
    verdict = await world.until_begun(rehearsing)
    assert (verdict.open, verdict.reason, verdict.again_s) == (False, "RehearsalNotMade", RETRY_S)
    assert "exceeded quota" in verdict.message
    world.full = False
    await asyncio.sleep(RETRY_S / 2)
    assert (await world.step(rehearsing)).message == verdict.message
    assert not world.made
    await asyncio.sleep(RETRY_S / 2 + 1)
    await world.step(rehearsing)
    assert len(world.made) == 1


async def test_another_image_is_another_trial() -> None:
    world = World()
    rehearsing = world.rehearsing()
    await world.until_begun(rehearsing)
    given = world.snapshot()
    other = controller(extraConf=world.extra_conf, slurmctld={"image": "registry.example/newer"})
    step = plan.config_step(given)
    assert isinstance(step, Apply)
    data = step.wanted["data"]
    changed = msgspec.structs.replace(given, controller=other)
    assert plan.generation(data) == plan.generation(data)
    assert plan.trial(given, data) != plan.trial(changed, data)


async def test_the_word_off_lets_everything_through() -> None:
    world = World()
    given = world.snapshot()
    meta = msgspec.structs.replace(given.controller.metadata, annotations={keys.ANNOTATION_REHEARSAL: "off"})
    given = msgspec.structs.replace(
        given, controller=msgspec.structs.replace(given.controller, metadata=meta)
    )
    verdict = await world.rehearsing().step(given, plan.config_step(given))
    assert verdict is not None
    assert verdict.open
    assert not world.made
