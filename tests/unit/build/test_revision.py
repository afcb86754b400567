"""The revision of a NodeSet is that of the reference, byte for byte (spec: nodeset 11.1, 32)."""

import pytest

from coil.build import revision
from coil.build.errors import BuildError
from tests.support import golden

MINIMAL = (
    b'{"spec":{"ordinalPadding":0,"oversubscribeNode":false,"slurmd":{"$patch":"replace","name":"",'
    b'"resources":{}},"template":{"$patch":"replace","metadata":{},"spec":{"containers":null}}}}'
)


def test_vectors_of_the_specification() -> None:
    payload = revision.payload({"controllerRef": {"name": "x"}})
    assert revision.encode(payload) == MINIMAL
    assert revision.hash_of(payload) == "d6457cd55"
    assert revision.hash_of(payload, 1) == "d6457cd54"


REVISIONS = [
    (str(step), item)
    for step in golden.all_steps()
    for item in step.outputs_of("ControllerRevision").values()
]


@pytest.mark.parametrize("item", [item for _, item in REVISIONS], ids=[name for name, _ in REVISIONS])
def test_hashes_of_the_corpus(item: golden.JsonObject) -> None:
    digest = item["metadata"]["labels"]["controller.kubernetes.io/hash"]
    assert revision.hash_of(item["data"]) == digest


def test_text_is_escaped_as_go_does() -> None:
    assert revision.encode({"b": "<a&b>\u2028é\t\b\x01", "a": 1}) == (
        '{"a":1,"b":"\\u003ca\\u0026b\\u003e\\u2028é\\t\\b\\u0001"}'.encode()
    )


def test_members_that_do_not_concern_pods_leave_the_revision_alone() -> None:
    spec = {"slurmd": {"image": "registry.example/slurmd:1"}}
    more = spec | {
        "replicas": 7,
        "updateStrategy": {"type": "OnDelete"},
        "partition": {"enabled": True},
        "pinToNode": True,
        "minReadySeconds": 5,
        "ssh": {"enabled": False, "sssdConfRef": {"key": ""}},
        "logfile": {},
    }
    assert revision.payload(more) == revision.payload(spec)


def test_each_member_that_pods_are_made_from_makes_a_revision() -> None:
    """Field case SCL-10: each change of the list makes pods anew, another number of them does not."""
    spec: golden.JsonObject = {"slurmd": {"image": "registry.example/slurmd:1"}, "replicas": 1}
    changes: list[golden.JsonObject] = [
        {"slurmd": {"image": "registry.example/slurmd:2"}},
        {"logfile": {"image": "registry.example/tools:2"}},
        {"extraConf": "Weight=5"},
        {"template": {"metadata": {"labels": {"tier": "a"}}}},
    ]
    digests = {revision.hash_of(revision.payload(spec | change)) for change in [{}, *changes]}
    assert len(digests) == 1 + len(changes)
    assert revision.hash_of(revision.payload(spec | {"replicas": 2})) in digests


def test_equal_quantities_are_one_revision() -> None:
    first = revision.payload({"slurmd": {"resources": {"limits": {"memory": "1024Mi"}}}})
    second = revision.payload({"slurmd": {"resources": {"limits": {"memory": "1Gi"}}}})
    assert first == second


def test_a_malformed_quantity_is_told_with_its_path() -> None:
    with pytest.raises(BuildError, match=r"spec\.slurmd\.resources\.limits\.memory"):
        revision.payload({"slurmd": {"resources": {"limits": {"memory": "lots"}}}})
