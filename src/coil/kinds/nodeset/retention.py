"""Who owns the volume claims of workers, and so what garbage collection does to them (spec: nodeset 25).

| whenDeleted | whenScaled | owner of a claim |
|---|---|---|
| Retain | Retain | nobody |
| Delete | Retain | the NodeSet |
| Retain | Delete | the pod, if it leaves for scale-in |
| Delete | Delete | the pod, if it leaves for scale-in, else the NodeSet |
"""

from collections.abc import Iterator, Mapping

import msgspec

from coil.api.meta import API_VERSION, OwnerReference
from coil.api.nodeset import NodeSet
from coil.kinds.nodeset.actions import OwnClaim
from coil.kinds.nodeset.drain import Cause
from coil.kinds.nodeset.snapshot import Snapshot, Worker
from coil.kube.views import ManifestView


class Retention(msgspec.Struct, frozen=True):
    """Changes of owners, and names of claims that somebody else controls: they are left to them."""

    changes: tuple[OwnClaim, ...] = ()
    conflicts: tuple[str, ...] = ()


def plan_retention(snapshot: Snapshot, condemned: Mapping[str, Cause]) -> Retention:
    """Compare the owners of all claims of workers with the wanted ones."""
    changes: list[OwnClaim] = []
    conflicts: list[str] = []
    for worker, claim in _claims(snapshot):
        owner = _wanted(snapshot.nodeset, worker, scaled_in=condemned.get(worker.uid) is Cause.SCALE_IN)
        live = claim.metadata.owner_references
        if any(_stale(reference, snapshot.nodeset, worker) for reference in live):
            continue
        foreign = [reference for reference in live if not _ours(reference, snapshot.nodeset, worker)]
        if owner is not None and any(reference.controller for reference in foreign):
            conflicts.append(claim.metadata.name)
            owner = None
        wanted = [*foreign, *([owner] if owner is not None else [])]
        if wanted != list(live):
            changes.append(_change(claim, wanted))
    return Retention(tuple(changes), tuple(conflicts))


def _claims(snapshot: Snapshot) -> Iterator[tuple[Worker, ManifestView]]:
    wanted = snapshot.nodeset.spec.volume_claim_templates
    templates = {(template.get("metadata") or {}).get("name") for template in wanted}
    for worker in snapshot.workers:
        for volume in worker.pod.spec.volumes:
            source = volume.persistent_volume_claim
            if source is None or volume.name not in templates:
                continue
            claim = snapshot.claims.get(source.claim_name)
            if claim is not None and claim.metadata.deletion_timestamp is None:
                yield worker, claim


def _wanted(nodeset: NodeSet, worker: Worker, *, scaled_in: bool) -> OwnerReference | None:
    policy = nodeset.spec.persistent_volume_claim_retention_policy
    if scaled_in and policy.when_scaled == "Delete":
        return _reference("v1", "Pod", worker.name, worker.uid)
    if policy.when_deleted == "Delete":
        return _reference(API_VERSION, "NodeSet", nodeset.metadata.name, nodeset.metadata.uid)
    return None


def _reference(api_version: str, kind: str, name: str, uid: str) -> OwnerReference:
    # A pod must not wait for its claim, which itself stays until no pod uses it; and to say so needs the
    # right to update the finalizers of pods, where OwnerReferencesPermissionEnforcement asks for it.
    block = kind != "Pod"
    return OwnerReference(
        api_version=api_version, kind=kind, name=name, uid=uid, controller=True, block_owner_deletion=block
    )


def _names_us(reference: OwnerReference, nodeset: NodeSet, worker: Worker) -> bool:
    return (reference.kind, reference.name) in {("NodeSet", nodeset.metadata.name), ("Pod", worker.name)}


def _ours(reference: OwnerReference, nodeset: NodeSet, worker: Worker) -> bool:
    return reference.uid in {nodeset.metadata.uid, worker.uid}


def _stale(reference: OwnerReference, nodeset: NodeSet, worker: Worker) -> bool:
    """It names us by an earlier incarnation: garbage collection is about to take the claim."""
    return _names_us(reference, nodeset, worker) and not _ours(reference, nodeset, worker)


def _change(claim: ManifestView, owners: list[OwnerReference]) -> OwnClaim:
    meta = claim.metadata
    return OwnClaim(
        name=meta.name, uid=meta.uid, resource_version=meta.resource_version, owners=tuple(owners)
    )
