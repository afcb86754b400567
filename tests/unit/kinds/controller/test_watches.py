"""Claims about which changes bring which Controllers back (spec: control-plane 11.1)."""

from typing import Any

import pytest
import pytest_asyncio

from coil.kinds.controller.reconcile import register
from coil.kinds.resources import ACCOUNTINGS, CONTROLLERS, NODESETS
from coil.kube import core
from coil.support.objects import ObjectKey
from tests.support.runtime import World, owned_by, world_of

ALBA = ObjectKey("ns", "alba")

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def world() -> World:
    """One Controller that refers to everything there is to refer to, already reconciled."""
    found = world_of(register)
    found.put(
        CONTROLLERS,
        "alba",
        spec={
            "slurmKeyRef": {"name": "auth", "key": "slurm.key"},
            "jwtKeyRef": {"name": "jwt", "key": "jwt.key"},
            "jwksKeyRef": {"name": "jwks", "key": "jwks.json"},
            "configFileRefs": [{"name": "files"}],
            "prologScriptRefs": [{"name": "prologs"}],
            "accountingRef": {"name": "db"},
            "persistence": {"enabled": True, "existingClaim": "state"},
        },
    )
    found.put(CONTROLLERS, "other")
    found.due()
    return found


OWNED = owned_by("Controller", "alba")
LABELS = {"app.kubernetes.io/name": "slurmctld", "app.kubernetes.io/instance": "alba"}


@pytest.mark.parametrize(
    ("resource", "name", "members"),
    [
        (CONTROLLERS, "alba", {"status": {"conditions": []}}),
        (core.SECRETS, "auth", {}),
        (core.SECRETS, "jwt", {}),
        (core.CONFIG_MAP_MANIFESTS, "jwks", {}),
        (core.CONFIG_MAP_MANIFESTS, "files", {}),
        (core.CONFIG_MAP_MANIFESTS, "prologs", {}),
        (core.CONFIG_MAP_MANIFESTS, "alba-config", {"metadata": OWNED}),
        (core.SERVICES, "alba-controller", {"metadata": OWNED}),
        (core.STATEFUL_SETS, "alba-controller", {"metadata": OWNED}),
        (core.CLAIMS, "state", {}),
        (core.PODS, "alba-controller-0", {"metadata": {"labels": LABELS}}),
        (ACCOUNTINGS, "db", {}),
        (NODESETS, "cpu", {"spec": {"controllerRef": {"name": "alba"}}}),
    ],
)
async def test_what_a_controller_refers_to_or_owns_brings_it_back(
    world: World, resource: Any, name: str, members: Any
) -> None:
    world.put(resource, name, **members)
    assert world.due() == {ALBA}


@pytest.mark.parametrize(
    ("resource", "members"),
    [
        (core.SECRETS, {}),
        (core.CONFIG_MAP_MANIFESTS, {}),
        (core.SERVICES, {}),
        (core.PODS, {"metadata": {"labels": {**LABELS, "app.kubernetes.io/name": "slurmd"}}}),
        (ACCOUNTINGS, {}),
    ],
)
async def test_strangers_bring_nothing_back(world: World, resource: Any, members: Any) -> None:
    world.put(resource, "stranger", **members)
    assert world.due() == set()


async def test_a_missing_thing_that_goes_again_brings_it_back_too(world: World) -> None:
    world.put(core.SECRETS, "auth")
    world.due()
    world.remove(core.SECRETS, "auth")
    assert world.due() == {ALBA}


async def test_a_secret_whose_data_stays_brings_nothing_back(world: World) -> None:
    world.put(core.SECRETS, "auth", data={"slurm.key": "YQ=="})
    world.due()
    world.put(core.SECRETS, "auth", data={"slurm.key": "YQ=="}, metadata={"labels": {"a": "b"}})
    assert world.due() == set()
    world.put(core.SECRETS, "auth", data={"slurm.key": "Yg=="})
    assert world.due() == {ALBA}


async def test_the_status_of_a_nodeset_brings_nothing_back_but_its_spec_does(world: World) -> None:
    spec = {"controllerRef": {"name": "alba"}}
    world.put(NODESETS, "cpu", spec=spec, metadata={"generation": 1})
    world.due()
    world.put(NODESETS, "cpu", spec=spec, metadata={"generation": 1}, status={"replicas": 3})
    assert world.due() == set()
    moved = {"controllerRef": {"name": "other"}}
    world.put(NODESETS, "cpu", spec=moved, metadata={"generation": 2})
    assert world.due() == {ALBA, ObjectKey("ns", "other")}
