"""Say of an object of ours that it cannot be read (invariant I7).

The CRDs let through nothing that our types refuse, as far as we know; older or altered CRDs may. For all
other passes such an object is as it was last readable, or not there. Here it gets the condition `Readable`
and an event that name the field and the reason; the condition goes when the object is mended.

The condition is applied under a field manager of its own: applying nothing takes it away again, and touches
no other condition.
"""

from typing import Any

import msgspec

from coil.api.conditions import find
from coil.api.meta import Condition
from coil.kinds import resources
from coil.kinds.frame import control
from coil.kinds.record import Record
from coil.kinds.runtime import Runtime
from coil.kinds.status import condition, is_news, status_change, write_status
from coil.kube.client import Client
from coil.kube.controller import DONE, Result
from coil.kube.errors import Invalid, NotFound
from coil.kube.queue import Queue
from coil.kube.resource import Resource
from coil.kube.store import Change, Store
from coil.kube.views import ManifestView
from coil.support.clock import utc_now
from coil.support.log import get_logger
from coil.support.objects import JsonObject, ObjectKey

READABLE = "Readable"
FIELD_MANAGER = "coil-readable"
OURS: tuple[Resource[Any], ...] = (
    resources.ACCOUNTINGS,
    resources.CONTROLLERS,
    resources.LOGINSETS,
    resources.NODESETS,
    resources.RESTAPIS,
    resources.TOKENS,
)

_REQUIRED: dict[Resource[Any], JsonObject] = {resources.NODESETS: {"nodeSetHash": "", "selector": ""}}
"""What the schema wants in every status, even in one that nothing else was ever written to."""

log = get_logger("unreadable")


def register(runtime: Runtime) -> None:
    """Tell of unreadable objects of all our kinds."""
    for resource in OURS:
        name, store = f"unreadable-{resource.plural}", runtime.store(resource)
        teller = Teller(resource, store, runtime.client, runtime.recorder(name, resource))
        watch(store, control(runtime, name, name, teller.reconcile, [store]))


def watch(store: Store[Any], queue: Queue) -> None:
    """Add the keys of objects that cannot be read, and of those that are still said to be so."""

    def mended(change: Change[Any]) -> None:
        if change.new is not None and find(change.new.status.conditions, READABLE) is not None:
            queue.add(change.key)

    store.on_undecodable(lambda key, _: queue.add(key))
    store.on_event(mended)


class Teller:
    """Keeps the condition of the objects of one kind in line with whether they can be read."""

    def __init__(self, resource: Resource[Any], store: Store[Any], client: Client, record: Record) -> None:
        self._resource = resource
        self._raw = msgspec.structs.replace(resource, view=ManifestView)
        self._store = store
        self._client = client
        self._record = record

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass.

        Raises:
            ApiError: the object could not be read from or written to the server.
        """
        error = self._store.undecodable(*key)
        if error is None:
            await self._take_back(key)
            return DONE
        log.debug("pass over an unreadable object", kind=self._resource.kind, error=error)
        try:
            found = await self._client.get(self._raw, key.name, key.namespace)
        except NotFound:
            return DONE
        told = condition(found, READABLE, "False", "Unreadable", explain(error))
        live = _conditions(found)
        if not is_news(live, told):
            return DONE
        self._record(found, "Warning", "Unreadable", "Read", told.message)
        status = {**_required(self._resource, found), **(status_change(live, [told], utc_now()) or {})}
        try:
            await write_status(self._client, self._raw, found, status, FIELD_MANAGER)
        except Invalid as refusal:
            # Its own schema refuses the object as it is: the event has to do.
            log.warning("no condition can be written", kind=self._resource.kind, error=str(refusal))
        return DONE

    async def _take_back(self, key: ObjectKey) -> None:
        item = self._store.get(*key)
        if item is not None and find(item.status.conditions, READABLE) is not None:
            await write_status(self._client, self._resource, item, {}, FIELD_MANAGER)


def explain(error: str) -> str:
    """For people: the field first, then what is wrong with it and what happens meanwhile."""
    what, found, path = error.rpartition(" - at `$.")
    said = f"{path.rstrip('`')}: {what}" if found else error
    return f"{said}; until this is corrected the object is treated as it was last readable, or not at all"


def _conditions(found: ManifestView) -> list[Condition]:
    return msgspec.convert(found.status.get("conditions") or [], list[Condition], strict=False)


def _required(resource: Resource[Any], found: ManifestView) -> JsonObject:
    return {name: value for name, value in _REQUIRED.get(resource, {}).items() if name not in found.status}
