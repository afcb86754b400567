"""Claims about which changes bring which LoginSets back (spec: control-plane 11.1)."""

from typing import Any

import pytest
import pytest_asyncio

from coil.kinds.loginset.reconcile import register
from coil.kinds.resources import CONTROLLERS, LOGINSETS
from coil.kube import core
from coil.support.objects import ObjectKey
from tests.support.runtime import World, owned_by, world_of

LOGIN = ObjectKey("ns", "login")

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def world() -> World:
    """Two LoginSets of two Controllers, already reconciled."""
    found = world_of(register)
    for name, cluster in (("login", "alba"), ("other", "brava")):
        spec = {
            "controllerRef": {"name": cluster},
            "sssdConfRef": {"name": f"{name}-users", "key": "sssd.conf"},
        }
        found.put(LOGINSETS, name, spec=spec)
    found.put(CONTROLLERS, "alba", metadata={"generation": 1}, spec=keys("auth"))
    found.due()
    return found


def keys(name: str) -> dict[str, Any]:
    return {"slurmKeyRef": {"name": name, "key": "slurm.key"}, "jwtKeyRef": {"name": "jwt", "key": "jwt.key"}}


@pytest.mark.parametrize(
    ("resource", "name", "members"),
    [
        (LOGINSETS, "login", {"status": {"replicas": 1}}),
        (CONTROLLERS, "alba", {"metadata": {"generation": 2}}),
        (core.SECRETS, "auth", {}),
        (core.SECRETS, "login-users", {}),
        (core.SECRETS, "login-ssh-host-keys", {"metadata": owned_by("LoginSet", "login")}),
        (core.CONFIG_MAP_MANIFESTS, "login-ssh-config", {"metadata": owned_by("LoginSet", "login")}),
        (core.SERVICES, "login", {"metadata": owned_by("LoginSet", "login")}),
        (core.DEPLOYMENTS, "login", {"metadata": owned_by("LoginSet", "login")}),
    ],
)
async def test_what_a_loginset_refers_to_or_owns_brings_it_back(
    world: World, resource: Any, name: str, members: Any
) -> None:
    world.put(resource, name, **members)
    assert world.due() == {LOGIN}


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
    assert world.due() == set()


async def test_a_thing_that_goes_brings_it_back_too(world: World) -> None:
    world.put(core.SECRETS, "login-ssh-host-keys", metadata=owned_by("LoginSet", "login"))
    world.due()
    world.remove(core.SECRETS, "login-ssh-host-keys")
    assert world.due() == {LOGIN}
    world.remove(CONTROLLERS, "alba")
    assert world.due() == {LOGIN}


async def test_a_secret_whose_data_stays_brings_nothing_back(world: World) -> None:
    world.put(core.SECRETS, "login-users", data={"sssd.conf": "YQ=="})
    world.due()
    world.put(core.SECRETS, "login-users", data={"sssd.conf": "YQ=="}, metadata={"labels": {"a": "b"}})
    assert world.due() == set()
