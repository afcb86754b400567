"""Claims about which changes bring which LoginSets back (spec: control-plane 11.1)."""

from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from coil.kinds.loginset.reconcile import register
from coil.kinds.resources import CONTROLLERS, LOGINSETS
from coil.kinds.runtime import Runtime
from coil.kube import core
from coil.kube.queue import Queue
from coil.support.objects import ObjectKey
from tests.support.runtime import due, offline_runtime, put

LOGIN = ObjectKey("ns", "login")

pytestmark = pytest.mark.asyncio


class World(NamedTuple):
    runtime: Runtime
    queue: Queue

    def put(self, resource: Any, name: str, **members: Any) -> Any:
        return put(self.runtime, resource, name, **members)


@pytest_asyncio.fixture
async def world() -> World:
    """Two LoginSets of two Controllers, already reconciled."""
    runtime = offline_runtime()
    register(runtime)
    found = World(runtime, runtime.controllers[0].queue)
    for name, cluster in (("login", "alba"), ("other", "brava")):
        spec = {
            "controllerRef": {"name": cluster},
            "sssdConfRef": {"name": f"{name}-users", "key": "sssd.conf"},
        }
        found.put(LOGINSETS, name, spec=spec)
    found.put(CONTROLLERS, "alba", metadata={"generation": 1}, spec=keys("auth"))
    due(found.queue)
    return found


def keys(name: str) -> dict[str, Any]:
    return {"slurmKeyRef": {"name": name, "key": "slurm.key"}, "jwtKeyRef": {"name": "jwt", "key": "jwt.key"}}


def owned(name: str = "login") -> dict[str, Any]:
    owner = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "LoginSet", "name": name, "uid": "u"}
    return {"ownerReferences": [{**owner, "controller": True}]}


@pytest.mark.parametrize(
    ("resource", "name", "members"),
    [
        (LOGINSETS, "login", {"status": {"replicas": 1}}),
        (CONTROLLERS, "alba", {"metadata": {"generation": 2}}),
        (core.SECRETS, "auth", {}),
        (core.SECRETS, "login-users", {}),
        (core.SECRETS, "login-ssh-host-keys", {"metadata": owned()}),
        (core.CONFIG_MAP_MANIFESTS, "login-ssh-config", {"metadata": owned()}),
        (core.SERVICES, "login", {"metadata": owned()}),
        (core.DEPLOYMENTS, "login", {"metadata": owned()}),
    ],
)
async def test_what_a_loginset_refers_to_or_owns_brings_it_back(
    world: World, resource: Any, name: str, members: Any
) -> None:
    world.put(resource, name, **members)
    assert due(world.queue) == {LOGIN}


@pytest.mark.parametrize(
    ("resource", "name", "members"),
    [
        (core.SECRETS, "stranger", {}),
        (core.SECRETS, "jwt", {}),
        (core.SERVICES, "stranger", {}),
        (CONTROLLERS, "alba", {"metadata": {"generation": 1}, "status": {"conditions": []}}),
        (CONTROLLERS, "stranger", {}),
    ],
)
async def test_what_does_not_concern_it_does_not(
    world: World, resource: Any, name: str, members: Any
) -> None:
    world.put(resource, name, **{"spec": keys("auth"), **members} if resource is CONTROLLERS else members)
    assert due(world.queue) == set()


async def test_a_thing_that_goes_brings_it_back_too(world: World) -> None:
    world.put(core.SECRETS, "login-ssh-host-keys", metadata=owned())
    due(world.queue)
    world.runtime.store(core.SECRETS).remove(ObjectKey("ns", "login-ssh-host-keys"))
    assert due(world.queue) == {LOGIN}
    world.runtime.store(CONTROLLERS).remove(ObjectKey("ns", "alba"))
    assert due(world.queue) == {LOGIN}


async def test_a_secret_whose_data_stays_brings_nothing_back(world: World) -> None:
    world.put(core.SECRETS, "login-users", data={"sssd.conf": "YQ=="})
    due(world.queue)
    world.put(core.SECRETS, "login-users", data={"sssd.conf": "YQ=="}, metadata={"labels": {"a": "b"}})
    assert due(world.queue) == set()
