"""Who owns the claims of workers (spec: nodeset 25; 30, Q25)."""

from typing import Any

import msgspec
import pytest

from coil.api.meta import OwnerReference
from coil.kinds.nodeset.drain import Cause
from coil.kinds.nodeset.retention import Retention, plan_retention
from coil.kube.views import ClaimSource, ManifestView, PodSpecView, PodView, VolumeView
from tests.support.workers import nodeset, pod, snapshot

SCALED_IN = {"uid-gpu-0": Cause.SCALE_IN}


def owner(kind: str, name: str, uid: str, *, controller: bool = True) -> OwnerReference:
    api_version = "v1" if kind == "Pod" else "slinky.slurm.net/v1beta1"
    return OwnerReference(
        api_version=api_version,
        kind=kind,
        name=name,
        uid=uid,
        controller=controller,
        block_owner_deletion=kind != "Pod",  # a pod does not wait for its claim
    )


POD, SET = owner("Pod", "gpu-0", "uid-gpu-0"), owner("NodeSet", "gpu", "uid-gpu")
OTHER = owner("Widget", "other", "uid-other")


def with_claim(name: str) -> PodView:
    volume = VolumeView(name="data", persistent_volume_claim=ClaimSource(claim_name=name))
    return msgspec.structs.replace(pod(0), spec=PodSpecView(node_name="kn-0", volumes=(volume,)))


def retention(
    deleted: str, scaled: str, causes: dict[str, Cause], *owners: OwnerReference, **metadata: Any
) -> Retention:
    of = nodeset(
        replicas=1,
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {}}],
        persistentVolumeClaimRetentionPolicy={"whenDeleted": deleted, "whenScaled": scaled},
    )
    meta = {"name": "data-gpu-0", "uid": "uid-claim", "resourceVersion": "7", **metadata}
    claim = msgspec.convert(
        {"metadata": {**meta, "ownerReferences": list(map(msgspec.to_builtins, owners))}}, ManifestView
    )
    seen = snapshot([with_claim("data-gpu-0")], [], of=of)
    return plan_retention(msgspec.structs.replace(seen, claims={"data-gpu-0": claim}), causes)


@pytest.mark.parametrize(
    ("deleted", "scaled", "causes", "wanted"),
    [
        ("Retain", "Retain", {}, []),
        ("Retain", "Retain", SCALED_IN, []),
        ("Delete", "Retain", {}, [SET]),
        ("Delete", "Retain", SCALED_IN, [SET]),
        ("Retain", "Delete", {}, []),
        ("Retain", "Delete", SCALED_IN, [POD]),
        ("Retain", "Delete", {"uid-gpu-0": Cause.UPDATE}, []),
        ("Retain", "Delete", {"uid-gpu-0": Cause.NODE}, []),
        ("Delete", "Delete", {}, [SET]),
        ("Delete", "Delete", SCALED_IN, [POD]),
    ],
)
def test_owner_by_policy(
    deleted: str, scaled: str, causes: dict[str, Cause], wanted: list[OwnerReference]
) -> None:
    changes = retention(deleted, scaled, causes).changes
    assert [list(change.owners) for change in changes] == ([wanted] if wanted else [])
    for other in ([], [POD], [SET]):
        changes = retention(deleted, scaled, causes, *other).changes
        assert [list(change.owners) for change in changes] == ([] if other == wanted else [wanted])


def test_owners_of_others_stay() -> None:
    user = owner("Widget", "other", "uid-other", controller=False)
    (change,) = retention("Delete", "Retain", {}, user).changes
    assert change.owners == (user, SET)
    assert (change.name, change.uid, change.resource_version) == ("data-gpu-0", "uid-claim", "7")


def test_a_claim_that_another_object_controls_is_left_to_it() -> None:
    found = retention("Delete", "Delete", SCALED_IN, OTHER, POD)
    assert [change.owners for change in found.changes] == [(OTHER,)]
    assert found.conflicts == ("data-gpu-0",)
    assert retention("Delete", "Delete", SCALED_IN, OTHER).changes == ()
    assert retention("Retain", "Retain", SCALED_IN, OTHER).conflicts == ()


def test_our_reference_becomes_the_controller() -> None:
    weak = owner("NodeSet", "gpu", "uid-gpu", controller=False)
    (change,) = retention("Delete", "Retain", {}, weak).changes
    assert change.owners == (SET,)


@pytest.mark.parametrize(
    "stale", [owner("Pod", "gpu-0", "uid-before"), owner("NodeSet", "gpu", "uid-before")]
)
def test_a_claim_of_an_earlier_incarnation_is_left_alone(stale: OwnerReference) -> None:
    assert retention("Delete", "Delete", SCALED_IN, stale) == Retention()


def test_a_claim_that_is_being_deleted_is_left_alone() -> None:
    assert retention("Delete", "Delete", {}, deletionTimestamp="2026-03-01T12:00:00Z") == Retention()
