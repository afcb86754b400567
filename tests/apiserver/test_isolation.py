"""Clusters in two namespaces, and NodeSets of one cluster, stay out of each other's way (field cases NSP)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab.apiserver import ApiServer
from tests.support.apiserver import kubectl
from tests.support.manager import KEYS, Manager, Namespace, controller, eventually, ours

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(120)]

SHARED = (("service", "slurm-workers-alba"), ("poddisruptionbudget", "slurm-workers-pdb-alba"))


@pytest.fixture
def spaces(managed_server: ApiServer) -> Iterator[tuple[Namespace, Namespace]]:
    made = Namespace(managed_server), Namespace(managed_server)
    with Manager(managed_server, namespaces=[space.name for space in made]) as manager:
        manager.wait_working()
        yield made


def nodeset(name: str) -> dict[str, Any]:
    image = {"image": "registry.example/any:1"}
    return ours("NodeSet", name, controllerRef={"name": "alba"}, replicas=0, slurmd=image, logfile=image)


def owners(space: Namespace) -> list[set[str]]:
    """Who owns each of the objects that the NodeSets of a cluster share."""
    found = [space.get(kind, name) or {"metadata": {}} for kind, name in SHARED]
    return [{ref["uid"] for ref in each["metadata"].get("ownerReferences", [])} for each in found]


def uids(space: Namespace) -> set[str]:
    return {each["metadata"]["uid"] for each in space.objects("nodesets")}


def test_shared_objects_belong_to_the_nodesets_of_their_own_namespace(
    spaces: tuple[Namespace, Namespace],
) -> None:
    """Field case NSP-03: clusters of one name in two namespaces."""
    for space in spaces:
        space.apply(KEYS, controller("alba"), nodeset("gpu"))
    for space in spaces:
        eventually(lambda space=space: owners(space) == [uids(space)] * 2, what="it has its owner")
    assert uids(spaces[0]).isdisjoint(uids(spaces[1]))


def test_shared_objects_stay_until_the_last_nodeset_goes(spaces: tuple[Namespace, Namespace]) -> None:
    """Field case NSP-05."""
    space = spaces[0]
    space.apply(KEYS, controller("alba"), nodeset("first"), nodeset("second"))
    eventually(lambda: owners(space) == [uids(space)] * 2 and len(uids(space)) == 2, what="both own them")
    first = [(space.get(*name) or {})["metadata"]["uid"] for name in SHARED]
    space.kubectl("delete", "nodeset", "first")
    eventually(lambda: all(len(each) == 1 for each in owners(space)), what="one owner is left")
    assert [(space.get(*name) or {})["metadata"]["uid"] for name in SHARED] == first
    space.kubectl("delete", "nodeset", "second")
    eventually(lambda: not any(space.get(*name) for name in SHARED), what="they are gone")


def test_a_token_takes_no_key_of_another_namespace(
    managed_server: ApiServer, spaces: tuple[Namespace, Namespace]
) -> None:
    """Field case NSP-02: a namespace in a reference is pruned, and the key is looked for at home."""
    there, here = spaces
    there.apply(KEYS)
    ref = {"name": "keys", "key": "jwt.key", "namespace": there.name}
    token = ours("Token", "root", username="root", jwtKeyRef=ref)
    kubectl(managed_server, "-n", here.name, "create", "--validate=false", "-f", "-", stdin=json.dumps(token))
    here.wait_condition("token", "root", "Reconciled=False/SecretMissing")
    assert "namespace" not in (here.get("token", "root") or {})["spec"]["jwtKeyRef"]
    assert [each["metadata"]["name"] for each in here.objects("secrets")] == []
