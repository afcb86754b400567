"""Write worker pods and their claims, and remember what the cache has to show (spec: nodeset 16)."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from coil.api import keys
from coil.api.meta import API_VERSION
from coil.api.nodeset import NodeSet
from coil.build.nodeset import PodTemplate, claims, stamp_node, stamp_ordinal
from coil.kinds.children import FIELD_MANAGER
from coil.kinds.nodeset.actions import (
    AdoptPod,
    CreatePod,
    DeletePod,
    OwnClaim,
    PatchConditions,
    PatchPod,
    ReleasePod,
    Remember,
)
from coil.kinds.nodeset.memory import Memory
from coil.kinds.record import Record
from coil.kinds.resources import NODESETS
from coil.kube import core
from coil.kube.client import Client, PatchKind
from coil.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from coil.kube.events import ObjectRef
from coil.kube.resource import Resource
from coil.support import metrics
from coil.support.log import get_logger
from coil.support.objects import JsonObject, ObjectKey

log = get_logger("nodeset-controller")


class Pods:
    """The pods of one NodeSet, for one pass."""

    def __init__(self, client: Client, record: Record, memory: Memory, nodeset: NodeSet) -> None:
        self._client = client
        self._record = record
        self._memory = memory
        self._nodeset = nodeset
        self._owner = nodeset.metadata.key
        self._patched: dict[str, str] = {}
        self._deleted: set[str] = set()
        self._remembered: Remember | None = None

    async def create(self, action: CreatePod, template: PodTemplate) -> None:
        """Make the pod and, before it, the claims that its volumes name."""
        manifest = _manifest(action, template)
        try:
            for claim in claims(template, manifest):
                await self._claim(claim, "" if action.hostname else action.name)
            pod = await self._client.create(
                core.PODS, manifest, self._owner.namespace, field_manager=FIELD_MANAGER
            )
        except AlreadyExists:
            # The cache lags behind, or somebody else's pod has the name: the next pass sees which.
            log.debug("pod exists already", pod=action.name)
            raise
        except ApiError as error:
            if not error.namespace_terminating:
                note = f"Error creating pod {action.name}: {error.message}"
                self._record(self._nodeset, "Warning", "FailedCreate", "Create", note)
            raise
        name = pod.metadata.name
        log.info("created pod", pod=name, why=action.why)
        metrics.worker_pods.labels("create", "").inc()
        note, related = f"Created pod: {name}", self._reference(core.PODS, name)
        self._record(self._nodeset, "Normal", "SuccessfulCreate", "Create", note, related)

    async def delete(self, action: DeletePod) -> None:
        """Delete the pod unless it is another one by now, or changed in what the decision rests on."""
        related = self._reference(core.PODS, action.name)
        try:
            await self._client.delete(
                core.PODS,
                action.name,
                self._owner.namespace,
                uid=action.uid,
                resource_version=action.resource_version,
            )
        except (NotFound, Conflict) as error:
            log.debug("pod is not what it was", pod=action.name, error=str(error))
            return
        except ApiError as error:
            note = f"Error deleting pod {action.name}: {error.message}"
            self._record(self._nodeset, "Warning", "FailedDelete", "Delete", note, related)
            raise
        self._deleted.add(action.uid)
        cause = action.cause.value if action.cause else "gone"
        log.info("deleted pod", pod=action.name, why=action.why, cause=cause)
        metrics.worker_pods.labels("delete", cause).inc()
        note = f"Deleted pod: {action.name}"
        self._record(self._nodeset, "Normal", "SuccessfulDelete", "Delete", note, related)

    async def patch(self, action: PatchPod) -> None:
        """Change labels and annotations, unless somebody else changed the pod since it was looked at."""
        metadata: JsonObject = {"uid": action.uid, "resourceVersion": action.resource_version}
        for name, values in (("labels", action.labels), ("annotations", action.annotations)):
            if values:
                metadata[name] = values
        await self._patch(action, {"metadata": metadata}, action.resource_version)

    def has_patched(self, action: PatchPod) -> bool:
        """The pod has been changed as the action says."""
        return action.uid in self._patched

    async def set_conditions(self, action: PatchConditions) -> None:
        """Change our conditions by type; those of the kubelet and of others are not in the patch."""
        await self._patch(action, conditions_patch(action), action.resource_version, subresource="status")

    async def adopt(self, action: AdoptPod) -> None:
        """Become the controller of an orphan, after the server confirmed that the NodeSet is still there."""
        meta = self._nodeset.metadata
        live = await self._client.get(NODESETS, meta.name, meta.namespace)
        if live.metadata.uid != meta.uid or live.metadata.deletion_timestamp is not None:
            return
        owner: JsonObject = {"apiVersion": API_VERSION, "kind": "NodeSet", "name": meta.name, "uid": meta.uid}
        owner |= {"controller": True, "blockOwnerDeletion": True}
        await self._patch(action, {"metadata": {"uid": action.uid, "ownerReferences": [owner]}})

    async def release(self, action: ReleasePod) -> None:
        """Take our reference off a pod that no longer matches."""
        gone = {"$patch": "delete", "uid": self._nodeset.metadata.uid}
        await self._patch(action, {"metadata": {"uid": action.uid, "ownerReferences": [gone]}})

    async def own_claim(self, action: OwnClaim) -> None:
        """Set the owners of a volume claim, unless somebody else changed it since."""
        metadata: JsonObject = {
            "uid": action.uid,
            "resourceVersion": action.resource_version,
            "ownerReferences": action.owners,
        }
        try:
            await self._client.patch(core.CLAIMS, action.name, {"metadata": metadata}, self._owner.namespace)
        except (NotFound, Conflict) as error:
            log.debug("claim is not what it was", claim=action.name, error=str(error))

    async def remember(self, action: Remember) -> None:
        """Write what others hold into the NodeSet, unless somebody changed it since."""
        meta = self._nodeset.metadata
        body = {"metadata": {"annotations": {keys.ANNOTATION_HELD: action.annotation}}}
        version = meta.resource_version
        try:
            nodeset = await self._client.patch(
                NODESETS,
                meta.name,
                body,
                meta.namespace,
                field_manager=FIELD_MANAGER,
                resource_version=version,
            )
        except (NotFound, Conflict) as error:
            log.debug("the NodeSet is not what it was", nodeset=meta.name, error=str(error))
            return
        self._remembered = action
        self._memory.changed(self._owner, meta.uid, version, nodeset.metadata.resource_version)

    def remembers(self, action: Remember) -> bool:
        """It is written."""
        return self._remembered is action

    def tell_pruned(self, names: Sequence[str]) -> None:
        """Record which Slurm records were removed."""
        for name in names:
            note = f"Removed Slurm node {name}, whose pod is gone for good"
            self._record(self._nodeset, "Normal", "DefunctSlurmNodePruned", "Delete", note)

    def expect_deletions(self, actions: Sequence[DeletePod]) -> None:
        """Hold the next pass back until the cache shows these deletions."""
        if actions:
            self._memory.expectations.expect_deletions(self._owner, [self._key(action) for action in actions])

    def give_up_deletions(self, actions: Sequence[DeletePod]) -> None:
        """Do not wait for those that were refused or not tried."""
        for action in actions:
            if action.uid not in self._deleted:
                self._memory.expectations.deletion_observed(self._owner, self._key(action))

    def expect_creations(self, count: int) -> None:
        """Hold the next pass back until the cache shows so many more pods."""
        if count:
            self._memory.expectations.expect_creations(self._owner, count)

    def give_up_creations(self, count: int) -> None:
        """So many pods were not made after all."""
        self._memory.expectations.creation_observed(self._owner, count)

    async def _patch(
        self,
        action: PatchPod | PatchConditions | AdoptPod | ReleasePod,
        body: Mapping[str, object],
        version: str = "",
        *,
        subresource: str | None = None,
    ) -> None:
        kind = PatchKind.MERGE if isinstance(action, PatchPod) else PatchKind.STRATEGIC
        namespace = self._owner.namespace
        try:
            pod = await self._client.patch(
                core.PODS,
                action.name,
                body,
                namespace,
                kind=kind,
                subresource=subresource,
                field_manager=FIELD_MANAGER,
            )
        except (NotFound, Conflict) as error:
            log.debug("pod is not what it was", pod=action.name, error=str(error))
            return
        before = self._patched.get(action.uid, version)
        after = self._patched[action.uid] = pod.metadata.resource_version
        self._memory.changed(self._owner, action.uid, before, after)

    async def _claim(self, manifest: JsonObject, pod: str) -> None:
        namespace, name = self._owner.namespace, manifest["metadata"]["name"]
        try:
            await self._client.create(core.CLAIMS, manifest, namespace, field_manager=FIELD_MANAGER)
        except AlreadyExists:
            live = await self._client.get(core.CLAIMS, name, namespace)
            if live.metadata.deletion_timestamp is not None:
                raise Conflict(
                    reason="ClaimTerminating", message=f"claim {name} is being deleted; waiting for it to go"
                ) from None
        else:
            note, related = f"create Claim: {name} Pod {pod}", self._reference(core.CLAIMS, name)
            self._record(self._nodeset, "Normal", "SuccessfulCreate", "Create", note, related)

    def _reference(self, resource: Resource[Any], name: str) -> ObjectRef:
        return ObjectRef(
            api_version=resource.api_version, kind=resource.kind, namespace=self._owner.namespace, name=name
        )

    def _key(self, action: DeletePod) -> ObjectKey:
        return ObjectKey(self._owner.namespace, action.name)


def conditions_patch(action: PatchConditions) -> JsonObject:
    """A strategic merge patch of the conditions.

    A message is given even when it is empty: left out, an old one would stay and be written in every pass.
    """
    written: list[JsonObject] = [{"message": "", **msgspec.to_builtins(wanted)} for wanted in action.wanted]
    removed: list[JsonObject] = [{"$patch": "delete", "type": kind} for kind in action.removed]
    return {"metadata": {"uid": action.uid}, "status": {"conditions": [*written, *removed]}}


def _manifest(action: CreatePod, template: PodTemplate) -> JsonObject:
    if action.hostname:
        manifest = stamp_node(template, action.node, action.hostname)
    else:
        manifest = stamp_ordinal(template, action.ordinal, node=action.node or None)
    if not action.cordoned:
        return manifest
    meta = manifest["metadata"]
    annotations = {**meta["annotations"], keys.ANNOTATION_POD_CORDON: "true"}
    return {**manifest, "metadata": {**meta, "annotations": annotations}}
