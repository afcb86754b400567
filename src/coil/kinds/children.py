"""Create, patch and delete the objects that a custom resource owns (spec: control-plane 3.6).

    await children.apply(owner, wanted, live)    # live: what the cache holds, None when nothing
    await children.delete(owner, live)

One write at most for each child and pass, none when the child is as wanted. There is no event for a patch
that succeeds.
"""

from typing import NamedTuple

import msgspec

from coil.build.patch import merge_patch
from coil.kinds.record import Record
from coil.kinds.resources import SERVICE_MONITORS
from coil.kube import core
from coil.kube.client import Client
from coil.kube.errors import AlreadyExists, ApiError, Conflict, Invalid, NotFound
from coil.kube.events import ObjectRef
from coil.kube.resource import KubeObject, Resource
from coil.kube.views import ManifestView
from coil.support.log import get_logger
from coil.support.objects import JsonObject

RESOURCES: dict[str, Resource[ManifestView]] = {
    resource.kind: resource
    for resource in (
        core.SERVICES,
        core.CONFIG_MAP_MANIFESTS,
        core.SECRET_MANIFESTS,
        core.STATEFUL_SETS,
        core.DEPLOYMENTS,
        core.DISRUPTION_BUDGETS,
        SERVICE_MONITORS,
    )
}
"""Where children of each kind are read and written."""

FIELD_MANAGER = "coil"

log = get_logger("children")


class Create(msgspec.Struct, frozen=True):
    """There is no such object: make it."""


class Patch(msgspec.Struct, frozen=True):
    """The object differs: send this JSON merge patch."""

    body: JsonObject


class Leave(msgspec.Struct, frozen=True):
    """The object is as wanted, immutable or on its way out."""


Decision = Create | Patch | Leave


def decide(live: ManifestView | None, wanted: JsonObject) -> Decision:
    """What has to be done so that the live object becomes the wanted one.

    Raises:
        BuildError: `wanted` has a member of a type that the API server refuses.
    """
    if live is None:
        return Create()
    if live.metadata.deletion_timestamp is not None:
        return Leave()
    patch = merge_patch(msgspec.to_builtins(live), wanted)
    return Patch(patch) if patch else Leave()


class ChildError(Exception):
    """A child could not be written; the text names the child and gives the server's reason.

    `retry` is false when the server refused the object as it is: only a changed object can help.
    """

    def __init__(self, doing: str, child: "Child", error: ApiError) -> None:
        super().__init__(f"error {doing} {child.namespace}/{child.name}: {_said(error)}")
        self.reason = error.reason if error.reason.isalpha() else "WriteFailed"
        self.retry = not isinstance(error, Invalid)


def _said(error: ApiError) -> str:
    """What the server said; when it said nothing, what was tried and how that ended."""
    return error.message or str(error)


class Child(NamedTuple):
    """Names a child."""

    resource: Resource[ManifestView]
    namespace: str
    name: str
    uid: str = ""

    @classmethod
    def of(cls, manifest: JsonObject) -> "Child":
        """The child that a manifest describes."""
        meta = manifest["metadata"]
        return cls(RESOURCES[manifest["kind"]], meta["namespace"], meta["name"])

    @classmethod
    def of_live(cls, live: ManifestView) -> "Child":
        """The child that is there."""
        meta = live.metadata
        return cls(RESOURCES[live.kind], meta.namespace, meta.name, meta.uid)

    @property
    def title(self) -> str:
        """As notes of the reference's events name it."""
        return f"*v1.{self.resource.kind}: {self.namespace}/{self.name}"

    @property
    def reference(self) -> ObjectRef:
        """For events."""
        return ObjectRef(
            api_version=self.resource.api_version,
            kind=self.resource.kind,
            namespace=self.namespace,
            name=self.name,
            uid=self.uid,
        )


class Children:
    """Writes the children of one kind of owner and records what was made, and what was refused."""

    def __init__(self, client: Client, record: Record) -> None:
        self._client = client
        self._record = record

    async def apply(self, owner: KubeObject, wanted: JsonObject, live: ManifestView | None) -> None:
        """Make the child what `wanted` says; `live` may be behind the server's state.

        Raises:
            ChildError: the server refused, or did not answer.
            BuildError: `wanted` has a member of a type that the API server refuses.
        """
        match decide(live, wanted):
            case Create():
                await self._create(owner, wanted)
            case Patch(body=body):
                await self._patch(owner, Child.of(wanted), body)
            case Leave():
                pass

    async def delete(self, owner: KubeObject, live: ManifestView | None) -> None:
        """Delete the child that the cache holds, that very one; not when it is on its way out already.

        Raises:
            ChildError: the server refused, or did not answer.
        """
        if live is None or live.metadata.deletion_timestamp is not None:
            return
        child = Child.of_live(live)
        try:
            await self._client.delete(child.resource, child.name, child.namespace, uid=child.uid)
        except (NotFound, Conflict):
            return  # it is gone, or another has its name: the event of that brings the owner back
        except ApiError as error:
            self._warn(
                owner, "DeleteFailed", "Delete", f"Error deleting {child.title}: {_said(error)}", child
            )
            raise ChildError("deleting", child, error) from error
        log.info("child deleted", child=child.title)
        note = f"Deleted {child.title}"
        self._record(owner, "Normal", "DeleteSucceeded", "Delete", note, child.reference)

    async def _create(self, owner: KubeObject, wanted: JsonObject) -> None:
        child = Child.of(wanted)
        try:
            made = await self._client.create(
                child.resource, wanted, child.namespace, field_manager=FIELD_MANAGER
            )
        except AlreadyExists:
            await self._patch_unseen(owner, child, wanted)
            return
        except ApiError as error:
            if error.namespace_terminating:
                log.debug("no child is made while the namespace ends", child=child.title)
                return
            self._warn(
                owner, "CreateFailed", "Create", f"Error creating {child.title}: {_said(error)}", child
            )
            raise ChildError("creating", child, error) from error
        log.info("child created", child=child.title)
        note, related = f"Created {child.title}", child._replace(uid=made.metadata.uid).reference
        self._record(owner, "Normal", "CreateSucceeded", "Create", note, related)

    async def _patch_unseen(self, owner: KubeObject, child: Child, wanted: JsonObject) -> None:
        """The cache does not know the child yet: compare with what the server has."""
        try:
            live = await self._client.get(child.resource, child.name, child.namespace)
        except ApiError as error:
            raise ChildError("reading", child, error) from error
        decision = decide(live, wanted)
        if isinstance(decision, Patch):
            await self._patch(owner, child, decision.body)

    async def _patch(self, owner: KubeObject, child: Child, body: JsonObject) -> None:
        try:
            await self._client.patch(
                child.resource, child.name, body, child.namespace, field_manager=FIELD_MANAGER
            )
        except ApiError as error:
            self._warn(owner, "PatchFailed", "Patch", f"Error patching {child.title}: {_said(error)}", child)
            raise ChildError("patching", child, error) from error
        log.info("child patched", child=child.title, members=members(body))

    def _warn(self, owner: KubeObject, reason: str, action: str, note: str, child: Child) -> None:
        self._record(owner, "Warning", reason, action, note, child.reference)


DEPTH = 4


def members(patch: JsonObject, depth: int = DEPTH) -> list[str]:
    """The paths that a patch touches, without values: they may be secret."""
    paths: list[str] = []
    for name, value in patch.items():
        if isinstance(value, dict) and value and depth > 1:
            paths += [f"{name}.{path}" for path in members(value, depth - 1)]
        else:
            paths.append(name)
    return paths
