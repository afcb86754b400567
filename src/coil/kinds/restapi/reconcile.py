"""One pass over a RestApi, and what causes one (spec: control-plane 7 and 11)."""

from typing import Any

from coil.api import names
from coil.api.controller import Controller as ControllerObject
from coil.api.defaults import with_defaults
from coil.kinds.children import Children
from coil.kinds.frame import control, outcome
from coil.kinds.owners import owners
from coil.kinds.record import Record
from coil.kinds.resources import CONTROLLERS, RESTAPIS
from coil.kinds.restapi.plan import Snapshot, conditions, steps
from coil.kinds.runtime import Runtime
from coil.kinds.status import is_news, status_change, write_status
from coil.kinds.steps import record_problems, run
from coil.kube import core
from coil.kube.client import Client
from coil.kube.controller import DONE, Result
from coil.kube.queue import Queue
from coil.kube.store import Change, Store
from coil.support.clock import utc_now
from coil.support.objects import ObjectKey

NAME = "restapi-controller"

OF = "restapi/controller"
"""Index of RestApis by the Controller they refer to."""


class Stores:
    """The caches a RestApi is seen in."""

    def __init__(self, runtime: Runtime) -> None:
        self.restapis = runtime.store(RESTAPIS)
        self.controllers = runtime.store(CONTROLLERS)
        self.services = runtime.store(core.SERVICES)
        self.deployments = runtime.store(core.DEPLOYMENTS)
        self.all: tuple[Store[Any], ...] = (
            self.restapis,
            self.controllers,
            self.services,
            self.deployments,
        )

    def snapshot(self, key: ObjectKey) -> Snapshot | None:
        """What is known now; None when there is no such RestApi."""
        found = self.restapis.get(*key)
        if found is None:
            return None
        child = names.restapi(key.name)
        return Snapshot(
            restapi=with_defaults(found),
            controller=self.controllers.get(key.namespace, found.spec.controller_ref.name),
            service=self.services.get(key.namespace, child),
            deployment=self.deployments.get(key.namespace, child),
        )


class Reconciler:
    """Brings the children and conditions of a RestApi in line with its spec."""

    def __init__(self, stores: Stores, client: Client, record: Record) -> None:
        self._stores = stores
        self._client = client
        self._record = record
        self._children = Children(client, record)

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass.

        Raises:
            PassFailedError: a step failed in a way that trying again may cure.
        """
        snapshot = self._stores.snapshot(key)
        if snapshot is None or snapshot.restapi.metadata.deletion_timestamp is not None:
            return DONE
        restapi = snapshot.restapi
        problems = await run(self._children, restapi, steps(snapshot))
        live, wanted = restapi.status.conditions, conditions(snapshot, problems)
        if is_news(live, wanted[0]):
            record_problems(self._record, restapi, problems)
        await write_status(self._client, RESTAPIS, restapi, status_change(live, wanted, utc_now()))
        return outcome(problems)


def watch(stores: Stores, queue: Queue) -> None:
    """Add the keys of the RestApis that a change concerns to the queue (spec: control-plane 11.1)."""
    stores.restapis.add_index(
        OF, lambda restapi: [f"{restapi.metadata.namespace}/{restapi.spec.controller_ref.name}"]
    )

    def users(change: Change[ControllerObject]) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None and old.metadata.generation == new.metadata.generation:
            return
        queue.add_all(restapi.metadata.key for restapi in stores.restapis.by_index(OF, str(change.key)))

    stores.restapis.on_event(lambda change: queue.add(change.key))
    stores.controllers.on_event(users)
    stores.services.on_event(lambda change: queue.add_all(owners(change, "RestApi")))
    stores.deployments.on_event(lambda change: queue.add_all(owners(change, "RestApi")))


def register(runtime: Runtime) -> None:
    """Reconcile RestApis."""
    stores = Stores(runtime)
    reconciler = Reconciler(stores, runtime.client, runtime.recorder(NAME, RESTAPIS))
    watch(stores, control(runtime, NAME, "restapi", reconciler.reconcile, stores.all))
