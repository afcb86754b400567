"""What waits for what within a pass (invariants I3, I12)."""

from typing import Any, cast

import msgspec
import pytest

from coil.api.controller import Controller
from coil.build.nodeset import PodInputs, template
from coil.kinds.nodeset.act import Means, perform
from coil.kinds.nodeset.actions import (
    Action,
    CreatePod,
    DeletePod,
    Drain,
    PatchConditions,
    PatchPod,
    Remember,
)
from coil.kinds.nodeset.freshness import Freshness
from coil.kinds.nodeset.memory import Memory
from coil.kinds.nodeset.pods import Pods
from coil.kinds.nodeset.slurmwrites import SlurmWrites
from coil.kube.client import Client
from coil.kube.errors import ApiError, Conflict, Unavailable
from coil.slurm.client import SlurmClient
from tests.support.workers import nodeset, pod

pytestmark = pytest.mark.asyncio

CONTROLLER = {
    "metadata": {"name": "main", "namespace": "slurm"},
    "spec": {"slurmKeyRef": {"name": "keys", "key": "slurm.key"}},
}
MARK = {"nodeset.slinky.slurm.net/pod-cordon": "true"}


class Servers:
    """Stands where both clients stand: refuses patches of some objects, notes what else is asked."""

    def __init__(self, **refusals: ApiError) -> None:
        self.done: list[str] = []
        self._refusals = refusals

    async def patch(self, _resource: Any, name: str, *_: Any, **__: Any) -> Any:
        if name in self._refusals:
            raise self._refusals[name]
        return pod(0, version="2")

    async def delete(self, _resource: Any, name: str, *_: Any, **__: Any) -> None:
        self.done.append(f"delete {name}")

    async def update_nodes(self, names: Any, **_: Any) -> None:
        self.done.append(f"drain {','.join(names)}")


async def done(actions: list[Action], **refusals: ApiError) -> list[str]:
    servers = Servers(**refusals)
    hands = Pods(cast("Client", servers), lambda *_: None, Memory(), nodeset())
    slurm = SlurmWrites(cast("SlurmClient", servers))
    await perform(actions, Means(pods=hands, freshness=Freshness(), slurm=slurm))
    return servers.done


def mark(name: str) -> PatchPod:
    return PatchPod(name=name, uid=name, resource_version="1", annotations=MARK, marks=f"node-{name}")


@pytest.mark.parametrize("refusal", [Conflict(), Unavailable()])
async def test_a_node_whose_pod_could_not_be_marked_is_not_drained(refusal: ApiError) -> None:
    actions: list[Action] = [
        mark("a"),
        mark("b"),
        Drain(nodes=("node-a", "node-b", "node-c"), reason="slurm-operator: x"),
    ]
    assert await done(actions) == ["drain node-a,node-b,node-c"]
    assert await done(actions, b=refusal) == ["drain node-a,node-c"]


async def test_without_any_node_left_slurm_is_not_asked() -> None:
    assert await done([mark("a"), Drain(nodes=("node-a",), reason="x")], a=Conflict()) == []


@pytest.mark.parametrize("refusal", [Conflict(), Unavailable()])
async def test_a_pod_is_not_deleted_before_it_is_written_what_others_hold_there(refusal: ApiError) -> None:
    actions: list[Action] = [
        Remember(annotation="{}", pods=("a",)),
        DeletePod(name="a", uid="a", why=""),
        DeletePod(name="b", uid="b", why=""),
    ]
    assert await done(actions) == ["delete a", "delete b"]
    assert await done(actions, gpu=refusal) == ["delete b"]


class Makers(Servers):
    """Makes pods, or refuses to."""

    def __init__(self, refusal: ApiError | None = None) -> None:
        super().__init__()
        self._refusal = refusal

    async def create(self, *_: Any, **__: Any) -> Any:
        if self._refusal is not None:
            raise self._refusal
        self.done.append("create")
        return pod(0)

    async def patch(self, *_: Any, **__: Any) -> Any:
        self.done.append("conditions")
        return pod(0, version="2")


@pytest.mark.parametrize(
    ("goes_on", "refusal", "expected"),
    [
        (True, None, ["create"]),
        (False, None, ["create", "conditions"]),
        (True, Unavailable(), ["conditions"]),
    ],
)
async def test_conditions_of_pods_wait_while_pass_after_pass_makes_pods(
    goes_on: bool, refusal: ApiError | None, expected: list[str]
) -> None:
    servers = Makers(refusal)
    hands = Pods(cast("Client", servers), lambda *_: None, Memory(), nodeset())
    made = template(nodeset(), PodInputs(controller=msgspec.convert(CONTROLLER, Controller)), "1")
    actions: list[Action] = [
        CreatePod(name="gpu-1", ordinal=1, why="missing"),
        PatchConditions(name="gpu-0", uid="u", resource_version="1", removed=("SlurmNodeStateIdle",)),
    ]
    await perform(actions, Means(pods=hands, freshness=Freshness(), template=made, goes_on=goes_on))
    assert servers.done == expected
