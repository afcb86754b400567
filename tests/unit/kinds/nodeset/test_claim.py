"""Which pods belong to a NodeSet (spec: nodeset 10)."""

import msgspec

from coil.api import keys
from coil.api.meta import OwnerReference
from coil.kinds.nodeset.claim import claim_pods
from coil.kube.views import PodView
from tests.support.workers import nodeset, pod


def owned_by(view: PodView, uid: str | None) -> PodView:
    owner = OwnerReference(
        api_version="slinky.slurm.net/v1beta1", kind="NodeSet", name="gpu", uid=uid or "", controller=True
    )
    references = [owner] if uid else []
    return msgspec.structs.replace(
        view, metadata=msgspec.structs.replace(view.metadata, owner_references=references)
    )


def test_own_pods_are_claimed() -> None:
    claims = claim_pods(nodeset(), [pod(0)])
    assert (claims.pods, claims.adopt, claims.release) == ((pod(0),), (), ())


def test_pods_of_an_earlier_nodeset_of_that_name_are_not_ours() -> None:
    claims = claim_pods(nodeset(), [owned_by(pod(0), "uid-before")])
    assert (claims.pods, claims.adopt, claims.release) == ((), (), ())


def test_an_orphan_that_fits_is_adopted_and_counts_from_the_next_pass() -> None:
    claims = claim_pods(nodeset(), [owned_by(pod(0), None)])
    assert claims.pods == ()
    assert [action.name for action in claims.adopt] == ["gpu-0"]


def test_orphans_that_end_or_have_another_name_stay_orphans() -> None:
    ends = owned_by(pod(0, terminating=True), None)
    other = owned_by(pod(0, owner="cpu", labels={keys.LABEL_INSTANCE: "gpu"}), None)
    assert claim_pods(nodeset(), [ends, other]).adopt == ()


def test_an_own_pod_without_our_labels_is_released() -> None:
    lost = pod(0, labels={keys.LABEL_INSTANCE: "somebody"})
    claims = claim_pods(nodeset(), [lost])
    assert claims.pods == ()
    assert [action.name for action in claims.release] == ["gpu-0"]
