"""Keep one Slurm client for each Controller, shared by all kinds (spec: control-plane 10).

The client's tokens renew themselves; a rotated key and a new address reach it without losing its view.
"""

from collections.abc import Iterable
from contextvars import Context
from typing import Any

from coil.api.controller import Controller as ControllerObject
from coil.api.restapi import RestApi
from coil.kinds.frame import control
from coil.kinds.resources import CONTROLLERS, RESTAPIS
from coil.kinds.runtime import Runtime
from coil.kinds.slurmclient.plan import MissingKeyError, access
from coil.kube import core
from coil.kube.controller import DONE, Result
from coil.kube.queue import Queue
from coil.kube.store import Change, Store
from coil.support.log import get_logger
from coil.support.objects import ObjectKey

NAME = "slurmclient-controller"

KEY_IN = "slurmclient/secret"
"""Index of Controllers by the Secret of their JWT key."""
SERVED_BY = "slurmclient/controller"
"""Index of RestApis by the Controller they refer to."""

log = get_logger(NAME)


class Reconciler:
    """Registers, changes and drops clients."""

    def __init__(self, runtime: Runtime) -> None:
        self._clusters = runtime.clusters
        self._environment = runtime.options.environment
        self.controllers = runtime.store(CONTROLLERS)
        self.restapis = runtime.store(RESTAPIS)
        self.secrets = runtime.store(core.SECRETS)
        self.stores: tuple[Store[Any], ...] = (self.controllers, self.restapis, self.secrets)
        self.controllers.add_index(KEY_IN, _key_secret)
        self.restapis.add_index(SERVED_BY, lambda restapi: [str(_served(restapi))])

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass."""
        controller = self.controllers.get(*key)
        if controller is None:
            self._drop(key, "the Controller is gone")
            return DONE
        ref = controller.jwt_ref
        secret = self.secrets.get(key.namespace, ref.name) if ref is not None else None
        restapis = self.restapis.by_index(SERVED_BY, str(key))
        try:
            wanted = access(controller, restapis, secret and secret.data, self._environment)
        except MissingKeyError as error:
            # A client with the key that was there goes on: slurmctld has not seen another one either.
            # The Controller's own pass tells what is missing; the Secret's event brings this one back.
            log.debug("no client can be made", reason=str(error))
            return DONE
        if wanted is None:
            self._drop(key, "no RestApi serves the Controller")
            return DONE
        if self._clusters.get(key) is None:
            log.info("client registered", url=wanted.base_url)
        # In an empty context: the poller outlives this pass and must not log in its name.
        Context().run(self._clusters.put, key, wanted.base_url, wanted.key, wanted.cluster_name)
        return DONE

    def _drop(self, key: ObjectKey, why: str) -> None:
        if self._clusters.get(key) is not None:
            log.info("client dropped", reason=why)
            self._clusters.remove(key)


def watch(reconciler: Reconciler, queue: Queue) -> None:
    """Add the keys of the Controllers that a change concerns to the queue."""

    def restapi_changed(change: Change[RestApi]) -> None:
        for restapi in (change.old, change.new):
            if restapi is not None:
                queue.add(_served(restapi))

    def secret_changed(change: Change[Any]) -> None:
        for controller in reconciler.controllers.by_index(KEY_IN, str(change.key)):
            queue.add(controller.metadata.key)

    reconciler.controllers.on_event(lambda change: queue.add(change.key))
    reconciler.restapis.on_event(restapi_changed)
    reconciler.secrets.on_event(secret_changed)


def register(runtime: Runtime) -> None:
    """Keep the clients of all Controllers."""
    reconciler = Reconciler(runtime)
    watch(reconciler, control(runtime, NAME, "slurmclient", reconciler.reconcile, reconciler.stores))


def _key_secret(controller: ControllerObject) -> Iterable[str]:
    if controller.jwt_ref is not None:
        yield str(ObjectKey(controller.metadata.namespace, controller.jwt_ref.name))


def _served(restapi: RestApi) -> ObjectKey:
    return ObjectKey(restapi.metadata.namespace, restapi.spec.controller_ref.name)
