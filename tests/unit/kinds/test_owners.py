"""Claims about whose child an object is."""

import pytest

from coil.kinds.owners import owners
from coil.kube.store import Change, ChangeKind
from coil.kube.views import ManifestView
from coil.support.objects import ObjectKey, ObjectMeta, OwnerReference

API = "slinky.slurm.net/v1beta1"


def child(*references: OwnerReference) -> ManifestView:
    return ManifestView(metadata=ObjectMeta(name="x", namespace="ns", owner_references=list(references)))


def reference(
    name: str, kind: str = "Controller", api: str = API, *, controller: bool = True
) -> OwnerReference:
    return OwnerReference(api_version=api, kind=kind, name=name, uid="u", controller=controller)


def test_both_the_old_and_the_new_owner_learn_of_a_change() -> None:
    change = Change(ChangeKind.MODIFIED, child(reference("a")), child(reference("b")))
    assert owners(change, "Controller") == {ObjectKey("ns", "a"), ObjectKey("ns", "b")}


@pytest.mark.parametrize(
    "other",
    [
        reference("a", kind="RestApi"),
        reference("a", api="apps/v1"),
        reference("a", controller=False),
    ],
)
def test_other_owners_do_not(other: OwnerReference) -> None:
    assert owners(Change(ChangeKind.ADDED, None, child(other)), "Controller") == set()
    assert owners(Change(ChangeKind.DELETED, child(), None), "Controller") == set()
