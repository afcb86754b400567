"""Claims about when a child is written (spec: control-plane 3.6); writing is tried on a real API server."""

from typing import Any

import msgspec
import pytest

from coil.build.defaults import with_server_defaults
from coil.build.errors import BuildError
from coil.kinds.children import Child, ChildError, Create, Leave, Patch, decide, members
from coil.kube import core
from coil.kube.errors import Invalid, Unavailable
from coil.kube.views import ManifestView
from coil.support.objects import JsonObject

SERVICE: JsonObject = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "alba", "namespace": "ns", "labels": {"a": "b"}},
    "spec": {"selector": {"x": "y"}, "ports": [{"name": "p", "port": 1}]},
}
FILES: JsonObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "files", "namespace": "ns"},
    "data": {"slurm.conf": "A=b\n"},
}


def live(manifest: JsonObject, *, immutable: bool = False, **metadata: Any) -> ManifestView:
    stored = with_server_defaults(manifest)
    stored = {**stored, "metadata": {**manifest["metadata"], **metadata}, "immutable": immutable}
    return msgspec.convert(stored, ManifestView)


@pytest.mark.parametrize("manifest", [SERVICE, FILES])
def test_what_is_missing_is_created_and_what_is_as_wanted_is_left(manifest: JsonObject) -> None:
    assert decide(None, manifest) == Create()
    assert decide(live(manifest), manifest) == Leave()


def test_what_differs_is_patched_with_the_difference_only() -> None:
    wanted = {**FILES, "data": {"slurm.conf": "A=c\n"}}
    assert decide(live(FILES), wanted) == Patch({"data": {"slurm.conf": "A=c\n"}})


def test_what_others_added_stays() -> None:
    assert decide(live(SERVICE, labels={"a": "b", "team": "hpc"}), SERVICE) == Leave()


def test_what_is_being_deleted_or_immutable_is_left_alone() -> None:
    wanted = {**FILES, "data": {"slurm.conf": "A=c\n"}}
    assert decide(live(FILES, deletionTimestamp="2026-01-01T00:00:00Z"), wanted) == Leave()
    assert decide(live(FILES, immutable=True), wanted) == Leave()


def test_a_member_of_the_wrong_type_is_told_before_it_is_sent() -> None:
    with pytest.raises(BuildError):
        decide(live(SERVICE), {**SERVICE, "spec": {"ports": "none"}})


def test_a_patch_is_described_without_its_values() -> None:
    patch = {"data": {"slurm.key": "c2VjcmV0"}, "metadata": {"labels": {"a": None}}, "spec": {}}
    assert members(patch) == ["data.slurm.key", "metadata.labels.a", "spec"]


def test_a_refusal_is_worth_another_try_unless_the_object_itself_was_refused() -> None:
    child = Child.of(SERVICE)
    assert child.title == "*v1.Service: ns/alba"
    refused = ChildError("creating", child, Invalid(422, "Invalid", "spec.x: no"))
    assert (str(refused), refused.reason, refused.retry) == (
        "error creating ns/alba: spec.x: no",
        "Invalid",
        False,
    )
    assert ChildError("creating", child, Unavailable()).retry


def test_a_child_names_itself_for_events() -> None:
    child = Child.of_live(live({**SERVICE}, uid="u1"))
    assert child.resource is core.SERVICES
    assert (child.reference.kind, child.reference.name, child.reference.uid) == ("Service", "alba", "u1")
