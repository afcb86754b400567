"""Claims about applying a configuration, step by step: how often Slurm is asked and told."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from coil.api import keys
from coil.kinds.controller.applying import Applying
from coil.kinds.controller.live import NO_WAY, Outcome, Target
from coil.kube.client import Client
from coil.kube.errors import NotFound
from coil.kube.views import PodView
from coil.slurm.clusters import Clusters
from coil.slurm.errors import Unreachable
from coil.slurm.wire import RunningConfiguration
from coil.support.objects import JsonObject, ObjectKey, ObjectMeta

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]

ALBA = ObjectKey("ns", "alba")
POD = PodView(metadata=ObjectMeta(name="alba-controller-0", namespace="ns", uid="u"))


class World:
    """A slurmctld that reads its files when told, a kubelet that brings them late, an API server."""

    def __init__(self, files_after: float = 0.5) -> None:
        self.running, self.wanted = 1, 1
        self.reachable, self.known, self.healthy = True, True, True
        self.asked = self.told = 0
        self.values: list[str] = []
        self.gone, self.said = False, ""
        self.key, self.wanted_key = b"old", b"old"
        self._files_after = files_after
        self._files_at = float("inf")

    async def configuration(self) -> RunningConfiguration:
        self.asked += 1
        if not self.reachable:
            raise Unreachable("GET conf", "refused")
        return RunningConfiguration(self.running, 100)

    async def reconfigure(self) -> None:
        self.told += 1
        if asyncio.get_running_loop().time() >= self._files_at:
            self.running, self.key = self.wanted, self.wanted_key

    async def pod_log(self, _name: str, _namespace: str, *, container: str, lines: int, limit: int) -> str:
        del lines, limit
        return self.said if container == "logfile" else ""

    async def patch(self, _resource: object, _name: str, body: JsonObject, _namespace: str) -> None:
        if self.gone:
            raise NotFound(404, "NotFound", "gone")
        self.values.append(body["metadata"]["annotations"][keys.ANNOTATION_LIVE_CONFIG])
        self._files_at = min(self._files_at, asyncio.get_running_loop().time() + self._files_after)

    def get(self, _key: ObjectKey) -> Any:
        if not self.known:
            return None
        poller = SimpleNamespace(view=None, health=SimpleNamespace(ok=self.healthy))
        return SimpleNamespace(client=self, poller=poller, tokens=SimpleNamespace(key=self.key))

    def applying(self) -> Applying:
        return Applying(cast("Client", self), cast("Clusters", self))


async def until_live(applying: Applying, target: Target, pod: PodView = POD) -> Outcome:
    while not (outcome := await applying.step(ALBA, target, (pod,), pod)).live:
        assert outcome.again_s is not None
        # Virtual time does not move by the last bit of a float.
        await asyncio.sleep(max(0.01, outcome.again_s))
    return outcome


async def test_one_change_is_one_reconfigure_and_then_nothing_more_is_asked() -> None:
    world = World()
    applying, world.wanted = world.applying(), 2
    outcome = await until_live(applying, Target("two", 2))
    assert (outcome.since, world.told, world.values) == (100, 1, ["two"])
    asked = world.asked
    assert (await applying.step(ALBA, Target("two", 2), (POD,), POD)).live
    assert world.asked == asked
    assert asyncio.get_running_loop().time() < 2


async def test_what_runs_already_is_left_alone_also_after_a_restart_of_the_operator() -> None:
    world = World()
    for _ in range(2):
        assert (await world.applying().step(ALBA, Target("one", 1), (POD,), POD)).live
    assert (world.told, world.values) == (0, [])


async def test_late_files_are_asked_for_again() -> None:
    world = World(files_after=3.0)
    applying, world.wanted = world.applying(), 2
    await until_live(applying, Target("two", 2))
    assert world.told > 1
    assert world.values == ["two", *(f"two.{number}" for number in range(1, world.told))]


async def test_a_burst_of_changes_is_one_reconfigure() -> None:
    world = World()
    applying, world.wanted = world.applying(), 7
    for number in range(2, 7):
        assert not (await applying.step(ALBA, Target(str(number), number), (POD,), POD)).live
        await asyncio.sleep(0.1)
    await until_live(applying, Target("7", 7))
    assert (world.told, world.values) == (1, ["7"])


async def test_while_slurm_does_not_answer_the_files_are_renewed_once_and_nothing_else() -> None:
    world = World()
    applying, world.reachable = world.applying(), False
    for _ in range(3):
        outcome = await applying.step(ALBA, Target("two", 2), (POD,), POD)
        assert (outcome.live, outcome.message) == (False, "Slurm does not answer")
        await asyncio.sleep(outcome.again_s or 0)
    assert (world.told, world.values) == (0, ["two"])


async def test_a_slurm_known_to_be_away_is_not_asked_at_all() -> None:
    world = World()
    applying, world.healthy = world.applying(), False
    outcome = await applying.step(ALBA, Target("two", 2), (POD,), POD)
    assert (outcome.live, outcome.again_s, world.asked, world.values) == (False, None, 0, ["two"])


async def test_without_a_rest_server_or_a_pod_nothing_is_told_to_slurm() -> None:
    world = World()
    applying, world.known = world.applying(), False
    assert (await applying.step(ALBA, Target("two", 2), (POD,), POD)).message == NO_WAY
    world.known = True
    assert not (await applying.step(ALBA, Target("two", 2), (), None)).live
    assert world.told == 0


async def test_a_pod_that_is_gone_is_no_error() -> None:
    world = World()
    applying, world.gone, world.reachable = world.applying(), True, False
    assert not (await applying.step(ALBA, Target("two", 2), (POD,), POD)).live


async def test_another_run_of_slurmctld_is_asked_again() -> None:
    world = World()
    applying = world.applying()
    await until_live(applying, Target("one", 1))
    other = PodView(metadata=ObjectMeta(name="alba-controller-0", namespace="ns", uid="v"))
    asked = world.asked
    await until_live(applying, Target("one", 1), other)
    assert world.asked == asked + 1
    applying.forget(ALBA)
    await until_live(applying, Target("one", 1), other)
    assert world.asked == asked + 2


@pytest.mark.parametrize("files_after", [0.5, 3.0])
async def test_a_key_alone_is_brought_by_a_reconfigure_and_seen_by_the_tokens_that_are_taken(
    files_after: float,
) -> None:
    world = World(files_after)
    applying, world.wanted_key = world.applying(), b"new"
    await until_live(applying, Target("one", 1, b"old"))
    assert world.told == 0
    await until_live(applying, Target("two", 1, b"new"))
    assert world.key == b"new"
    assert world.values[0] == "two"
    assert (world.told == 1) == (files_after < 1)


async def test_a_key_that_the_kubelet_does_not_bring_is_told() -> None:
    """It keeps an immutable Secret that was made anew: new pods have to bring the key."""
    world = World(files_after=1000)
    applying, world.wanted_key = world.applying(), b"new"
    while not applying.unbrought(ALBA):
        outcome = await applying.step(ALBA, Target("two", 1, b"new"), (POD,), POD)
        assert outcome.again_s is not None
        await asyncio.sleep(max(0.01, outcome.again_s))
    assert applying.unbrought(ALBA) == b"new"
    assert 5 < asyncio.get_running_loop().time() < 20
    applying.forget(ALBA)
    assert applying.unbrought(ALBA) == b""


REFUSED = """[2026-11-30T23:05:20.329] error: Invalid qos (high) for partition q
[2026-11-30T23:05:20.330] fatal: Invalid partition
[2026-11-30T23:05:20.384] Resuming operation, reconfigure failed.
[2026-11-30T23:05:20.385] Running as primary controller
"""
RUNNING = {"containerStatuses": [{"name": name} for name in ("slurmctld", "logfile")]}


async def test_what_slurmctld_does_not_take_is_told_and_not_tried_for_ever() -> None:
    """Only slurmdbd knows a QOS; who creates it there lets slurmctld read the configuration again."""
    pod = msgspec.convert({"metadata": {"name": "alba-controller-0", "uid": "u"}, "status": RUNNING}, PodView)
    world = World(files_after=1000)
    applying, world.said = world.applying(), REFUSED
    while not (outcome := await applying.step(ALBA, Target("two", 2), (pod,), pod)).refused:
        assert outcome.again_s is not None
        await asyncio.sleep(max(0.01, outcome.again_s))
    assert outcome.message == "Invalid qos (high) for partition q; Invalid partition"
    assert (outcome.live, outcome.again_s, world.told) == (False, None, 2)
    for _ in range(3):
        assert await applying.step(ALBA, Target("two", 2), (pod,), pod) == outcome
    assert world.told == 2
    world.running = 2
    assert (await applying.step(ALBA, Target("two", 2), (pod,), pod)).live


async def test_an_earlier_refusal_is_none_of_this_configuration() -> None:
    """The files are only late."""
    pod = msgspec.convert({"metadata": {"name": "alba-controller-0", "uid": "u"}, "status": RUNNING}, PodView)
    world = World(files_after=4)
    applying, world.wanted = world.applying(), 2
    world.said = f"{REFUSED}[2026-11-30T23:06:20.330] Attempting to reconfigure\n"
    assert (await until_live(applying, Target("two", 2), pod)).live
