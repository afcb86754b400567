"""One reflector and store per kind in use, started and awaited together.

caches = Caches(client)
pods = caches.store(PODS)
pods.add_index("node", lambda pod: [pod.spec.node_name])
async with Tasks() as tasks:
    tasks.spawn("caches", caches.run())
    await caches.sync()
"""

import asyncio
import gc
from collections.abc import Sequence
from typing import Any, TypeVar, cast

from coil.kube.client import Client
from coil.kube.reflector import Reflector, Scope
from coil.kube.resource import KubeObject, Resource
from coil.kube.store import Store
from coil.support.log import get_logger

T = TypeVar("T", bound=KubeObject)

PATIENCE = 10.0
"""Seconds between two log lines that say which caches are still missing."""

log = get_logger("caches")


class Caches:
    """Stores of this process.

    Args:
        client: an open client.
        namespaces: where to look for namespaced kinds; none means everywhere
            (spec: control-plane 15.5).
    """

    def __init__(self, client: Client, namespaces: Sequence[str] = ()) -> None:
        self._client = client
        self._namespaces = tuple(namespaces)
        self._stores: dict[tuple[Resource[Any], Scope], Store[Any]] = {}
        self._reflectors: list[Reflector[Any]] = []
        self._running = False

    def store(
        self,
        resource: Resource[T],
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Store[T]:
        """The store of a kind, shared by all who ask for it; RuntimeError after `run` has begun."""
        scope = Scope(label_selector=label_selector, field_selector=field_selector)
        if (known := self._stores.get((resource, scope))) is not None:
            return cast("Store[T]", known)
        if self._running:
            raise RuntimeError(f"the caches run already; ask for the store of {resource} before")
        return self._new(resource, scope)

    def _new(self, resource: Resource[T], scope: Scope) -> Store[T]:
        namespaces = (self._namespaces or (None,)) if resource.namespaced else (None,)
        store: Store[T] = Store(str(resource), namespaces)
        self._stores[resource, scope] = store
        for namespace in namespaces:
            here = Scope(
                namespace=namespace,
                label_selector=scope.label_selector,
                field_selector=scope.field_selector,
            )
            self._reflectors.append(Reflector(self._client, resource, store, here))
        return store

    async def run(self) -> None:
        """Follow every kind that a store was asked for, until cancelled."""
        self._running = True
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run(), name=f"reflector/{reflector}")

    async def sync(self) -> None:
        """Wait until every store has been filled once; says now and then what is missing."""
        for store in self._stores.values():
            await self._sync_one(store)
        # The first fill is the bulk of all objects and lives long: spare the collector the walk. A full
        # collection before would be such a walk itself (100 ms of CPU time at 10,000 objects).
        gc.collect(1)
        gc.freeze()

    async def _sync_one(self, store: Store[Any]) -> None:
        while not store.synced.is_set():
            try:
                async with asyncio.timeout(PATIENCE):
                    await store.synced.wait()
            except TimeoutError:
                log.info("waiting for caches", missing=self.missing)

    @property
    def missing(self) -> list[str]:
        """Kinds that have not been listed yet."""
        return [store.name for store in self._stores.values() if not store.synced.is_set()]
