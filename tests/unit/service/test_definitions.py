"""What an older CRD drops is told at the start (field case HLM-10)."""

import copy

import pytest

from coil.api.crd import definition
from coil.api.kinds import KINDS
from coil.service.definitions import dropped_of
from coil.support.objects import JsonObject

NODESET = next(kind for kind in KINDS if kind.kind == "NodeSet")
SCHEMA = "net.slurm.slinky.v1beta1.NodeSet"


def served() -> JsonObject:
    schema = definition(NODESET)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return {"components": {"schemas": {SCHEMA: copy.deepcopy(schema)}}}


def members(document: JsonObject, *path: str) -> JsonObject:
    """The properties below a path."""
    found = document["components"]["schemas"][SCHEMA]
    for name in path:
        found = found["properties"][name]
    return found["properties"]


def test_the_same_definition_drops_nothing() -> None:
    assert dropped_of(NODESET, served()) == []


@pytest.mark.parametrize(
    "path", [("spec", "slurmd"), ("spec", "updateStrategy", "rollingUpdate"), ("spec", "ssh")]
)
def test_a_field_that_is_not_known_is_named_with_its_place(path: tuple[str, ...]) -> None:
    document = served()
    del members(document, *path[:-1])[path[-1]]
    assert dropped_of(NODESET, document) == [".".join(path)]


def test_a_server_that_keeps_everything_drops_nothing() -> None:
    document = served()
    keeps = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    members(document)["spec"] = keeps
    assert dropped_of(NODESET, document) == []


def test_a_kind_that_is_not_there_lacks_all() -> None:
    assert "spec" in dropped_of(NODESET, {})
