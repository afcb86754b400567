"""Keep one ControllerRevision for each template that pods were made from (spec: nodeset 11).

Listed by owner, since revisions carry only the template's labels (spec: nodeset 30, Q9).
"""

from collections.abc import Collection, Iterable

import msgspec

from coil.api import keys
from coil.api.nodeset import NodeSet
from coil.build.nodeset import controller_revision
from coil.kube.client import Client
from coil.kube.errors import AlreadyExists, ApiError, NotFound
from coil.kube.resource import Resource
from coil.support.objects import JsonObject, ObjectMeta


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


def surplus(listed: Iterable[RevisionView], needed: Collection[str], limit: int) -> list[RevisionView]:
    """The oldest revisions beyond `limit` that neither the NodeSet nor a pod needs."""
    spare = [revision for revision in listed if _hash(revision) not in needed]
    spare.sort(key=lambda revision: (revision.revision, revision.metadata.creation_timestamp))
    return spare[: max(len(spare) - max(limit, 0), 0)]


def _hash(revision: RevisionView) -> str:
    return revision.metadata.labels.get(keys.LABEL_REVISION, "")
