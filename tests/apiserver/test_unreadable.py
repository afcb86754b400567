"""An object that the schema lets through and the operator cannot read (invariant I7)."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from coil.api import crd
from lab.apiserver import ApiServer
from tests.support.apiserver import kubectl
from tests.support.manager import Manager, Namespace, eventually, ours, secret

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(120)]

TOKEN_CRD = "tokens.slinky.slurm.net"
NODESET_CRD = "nodesets.slinky.slurm.net"


def loosen(server: ApiServer, name: str, field: str) -> None:
    """Let that member of spec be anything, as a CRD of another version might."""
    path = f"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/{field}"
    anything = {"x-kubernetes-preserve-unknown-fields": True}
    patch = json.dumps([{"op": "replace", "path": path, "value": anything}])
    kubectl(server, "patch", "crd", name, "--type=json", "-p", patch)


@pytest.fixture
def loose(managed_server: ApiServer) -> Iterator[None]:
    loosen(managed_server, TOKEN_CRD, "username")
    loosen(managed_server, NODESET_CRD, "partition")
    yield
    kubectl(managed_server, "apply", "-f", "-", stdin=crd.to_yaml(crd.all_definitions().values()))


def token(name: str, username: Any) -> dict[str, Any]:
    return ours("Token", name, jwtKeyRef={"name": "jwt", "key": "jwt.key"}, username=username)


def apply_loosely(space: Namespace, wanted: dict[str, Any]) -> None:
    """Apply as soon as the server takes it: a changed schema is used a moment later."""

    def taken() -> bool:
        try:
            space.apply(wanted)
        except subprocess.CalledProcessError:
            return False
        found = space.get(wanted["kind"].lower(), wanted["metadata"]["name"])
        return found is not None and wanted["spec"].items() <= found["spec"].items()

    eventually(taken, what="the loosened schema is in use")


@pytest.mark.usefixtures("loose")
def test_it_is_told_affects_only_itself_and_the_word_goes_when_it_is_mended(
    space: Namespace, manager: Manager
) -> None:
    manager.wait_working()
    space.apply(secret("jwt", jwt_key="a key that is long enough for HS256"))
    apply_loosely(space, token("bad", {"first": "ada"}))
    message = space.wait_condition("token", "bad", "Readable=False/Unreadable")
    assert message.startswith("spec.username: Expected `str`, got `object`")
    events = eventually(lambda: space.events("Token", "bad"), what="there is an event")
    assert [(type_, reason) for type_, reason, _ in events] == [("Warning", "Unreadable")]
    space.apply(token("good", "grace"))
    space.wait_condition("token", "good", "Reconciled=True")
    space.apply(token("bad", "ada"))
    space.wait_condition("token", "bad", "Reconciled=True")
    eventually(lambda: space.condition("token", "bad", "Readable") is None, what="the condition goes")


@pytest.mark.usefixtures("loose")
def test_a_nodeset_that_never_had_a_status_is_told_too(space: Namespace, manager: Manager) -> None:
    manager.wait_working()
    apply_loosely(space, ours("NodeSet", "cpu", controllerRef={"name": "alba"}, slurmd={}, partition="all"))
    message = space.wait_condition("nodeset", "cpu", "Readable=False/Unreadable")
    assert message.startswith("spec.partition: ")
