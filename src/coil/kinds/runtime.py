"""What the manager hands to each kind, and what each kind hands back.

    def register(runtime: Runtime) -> None:
        pods = runtime.store(core.PODS)
        queue = control(runtime, NAME, "nodeset", reconcile, [pods])
        pods.on_event(lambda change: queue.add(change.key))

A kind asks for its stores while it registers; the manager then fills the caches and, once it leads, runs
the controllers.
"""

import os
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from coil.kinds.record import Record, recorder
from coil.kinds.resources import SELECTIONS, Selection
from coil.kube.cache import Caches
from coil.kube.client import Client
from coil.kube.controller import Controller
from coil.kube.events import Events
from coil.kube.resource import KubeObject, Resource
from coil.kube.store import Store
from coil.slurm.clusters import Clusters

T = TypeVar("T", bound=KubeObject)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a kind may need to know of the manager's flags (spec: control-plane 15.1)."""

    workers: Mapping[str, int] = {}
    """Passes that may run at once, by kind in lower case."""
    propagated_node_conditions: tuple[str, ...] = ()
    environment: Mapping[str, str] = msgspec.field(default_factory=lambda: dict(os.environ))


class Runtime:
    """Everything a kind works with."""

    def __init__(
        self, client: Client, caches: Caches, events: Events, clusters: Clusters, options: Options
    ) -> None:
        self.client = client
        self.clusters = clusters
        self.options = options
        self.controllers: list[Controller] = []
        self._caches = caches
        self._events = events

    def store(self, resource: Resource[T]) -> Store[T]:
        """The cache of a resource, shared by all who ask for it; of what `SELECTIONS` names only."""
        selection = SELECTIONS.get(resource, Selection())
        return self._caches.store(resource, label_selector=selection.labels, field_selector=selection.fields)

    def recorder(self, controller: str, resource: Resource[Any]) -> Record:
        """Records events about objects of that kind, reported by that controller."""
        return recorder(self._events.recorder(controller), resource)

    def workers(self, kind: str) -> int:
        """How many passes of a kind (in lower case) may run at once."""
        return self.options.workers.get(kind, 1)

    def add(self, controller: Controller) -> None:
        """Run this controller while the process leads."""
        self.controllers.append(controller)
