"""Keep one ControllerRevision for each template that pods were made from (spec: nodeset 11).

Listed by owner, since revisions carry only the template's labels (spec: nodeset 30, Q9).

A revision is named by a hash that the operator computes from the NodeSet. Another operator, or another
version of this one, may compute another hash from the same NodeSet; the workers are the same for all that.
So the revision that the status names goes on standing for what its generation asks for, and remembers that
in an annotation (docs/adr/0071).
"""

from collections.abc import Collection, Iterable

import msgspec

from coil.api import keys
from coil.api.conditions import find
from coil.api.nodeset import NodeSet
from coil.build.errors import BuildError
from coil.build.metadata import counted
from coil.build.nodeset import controller_revision, revision_hash
from coil.kinds.status import RECONCILED
from coil.kube.client import Client
from coil.kube.errors import AlreadyExists, ApiError, NotFound
from coil.kube.resource import Resource
from coil.support.log import get_logger
from coil.support.objects import JsonObject, ObjectMeta

INVALID = "Invalid"
"""Reason of `Reconciled` when nothing can be built from the NodeSet."""

log = get_logger("nodeset-controller")


class RevisionView(msgspec.Struct, frozen=True, kw_only=True):
    """A ControllerRevision."""

    metadata: ObjectMeta
    data: JsonObject = {}
    revision: int = 0


REVISIONS = Resource(group="apps", plural="controllerrevisions", kind="ControllerRevision", view=RevisionView)


class Revisions:
    """Writes revisions when a NodeSet's template or the revisions in use change, and reads none otherwise."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen: dict[str, tuple[str, frozenset[str]]] = {}
        self._in_effect: dict[str, tuple[str, str]] = {}

    async def in_effect(self, nodeset: NodeSet) -> str | None:
        """The hash by which pods of the NodeSet's current revision are known; None when it has no valid one.

        Raises:
            ApiError: the revisions could not be read or written.
        """
        try:
            computed = revision_hash(nodeset)
        except BuildError:
            return None
        if nodeset.status.node_set_hash in ("", computed):
            return computed
        known = self._in_effect.get(nodeset.metadata.uid)
        if known is None or known[0] != computed:
            found = await self._stand_in(nodeset, computed)
            known = self._in_effect[nodeset.metadata.uid] = (computed, found)
        return known[1]

    async def _stand_in(self, nodeset: NodeSet, computed: str) -> str:
        revision = stand_in(nodeset, computed, await self._list(nodeset))
        if revision is None:
            return computed
        meta = revision.metadata
        if meta.annotations.get(keys.ANNOTATION_STANDS_FOR) != computed:
            body: JsonObject = {"metadata": {"annotations": {keys.ANNOTATION_STANDS_FOR: computed}}}
            await self._client.patch(REVISIONS, meta.name, body, meta.namespace)
            log.info("revision stays in effect", nodeset=str(nodeset.metadata.key), revision=meta.name)
        return _hash(revision)

    async def keep(self, nodeset: NodeSet, current: str, used: Collection[str]) -> None:
        """Make sure that the current revision is recorded, and drop those that nothing needs.

        Args:
            nodeset: the owner.
            current: hash of its current revision.
            used: hashes that pods carry.
        """
        state = (current, frozenset(used))
        if self._seen.get(nodeset.metadata.uid) == state:
            return
        listed = await self._list(nodeset)
        if current not in {_hash(revision) for revision in listed}:
            await self._create(nodeset, max((item.revision for item in listed), default=0) + 1)
        for revision in surplus(listed, {current, *used}, nodeset.spec.revision_history_limit):
            await self._delete(revision)
        self._seen[nodeset.metadata.uid] = state

    def forget(self, uid: str) -> None:
        """The NodeSet is gone."""
        self._seen.pop(uid, None)
        self._in_effect.pop(uid, None)

    async def _list(self, nodeset: NodeSet) -> list[RevisionView]:
        uid, namespace = nodeset.metadata.uid, nodeset.metadata.namespace
        page = await self._client.list_page(REVISIONS, namespace, limit=0)
        return [item for item in page.items if (owner := item.metadata.controller) and owner.uid == uid]

    async def _create(self, nodeset: NodeSet, number: int) -> None:
        manifest = controller_revision(nodeset, number=number)
        try:
            await self._client.create(REVISIONS, manifest, nodeset.metadata.namespace)
        except AlreadyExists:
            return
        except ApiError as error:
            if not error.namespace_terminating:
                raise

    async def _delete(self, revision: RevisionView) -> None:
        meta = revision.metadata
        try:
            await self._client.delete(REVISIONS, meta.name, meta.namespace, uid=meta.uid)
        except NotFound:
            return


def stand_in(nodeset: NodeSet, computed: str, listed: Iterable[RevisionView]) -> RevisionView | None:
    """The revision that stands for hash `computed` of the NodeSet without having it; None when none does."""
    by_hash = {_hash(revision): revision for revision in listed}
    if computed in by_hash:
        return None
    for revision in by_hash.values():
        if revision.metadata.annotations.get(keys.ANNOTATION_STANDS_FOR) == computed:
            return revision
    current = by_hash.get(nodeset.status.node_set_hash)
    return current if current and (_rolled_out(nodeset) or _same_pods(nodeset, current)) else None


def _same_pods(nodeset: NodeSet, revision: RevisionView) -> bool:
    """Whether only labels differ that tell which chart in which version the NodeSet comes from."""
    wanted = controller_revision(nodeset, number=1)["data"]
    return _what_counts(wanted) == _what_counts(revision.data)


def _what_counts(data: JsonObject) -> JsonObject:
    spec = data.get("spec", {})
    template = spec.get("template", {})
    return {**spec, "template": {**template, "metadata": counted(template.get("metadata", {}))}}


def _rolled_out(nodeset: NodeSet) -> bool:
    """Whether the hash in the status is that of what the NodeSet asks for now."""
    told = find(nodeset.status.conditions, RECONCILED)
    invalid = told is not None and told.status == "False" and told.reason == INVALID
    return nodeset.status.observed_generation == nodeset.metadata.generation and not invalid


def surplus(listed: Iterable[RevisionView], needed: Collection[str], limit: int) -> list[RevisionView]:
    """The oldest revisions beyond `limit` that neither the NodeSet nor a pod needs."""
    spare = [revision for revision in listed if _hash(revision) not in needed]
    spare.sort(key=lambda revision: (revision.revision, revision.metadata.creation_timestamp))
    return spare[: max(len(spare) - max(limit, 0), 0)]


def _hash(revision: RevisionView) -> str:
    return revision.metadata.labels.get(keys.LABEL_REVISION, "")
