"""A Runtime without an API server: tests put objects into its stores and see which keys become due."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from coil.kinds.runtime import Options, Runtime
from coil.kube.cache import Caches
from coil.kube.client import Client
from coil.kube.config import ClusterConfig
from coil.kube.events import Events
from coil.kube.queue import Queue
from coil.kube.resource import Resource
from coil.slurm.clusters import Clusters
from coil.support.objects import ObjectKey
from coil.support.tasks import Tasks

T = TypeVar("T")


class IdleTasks(Tasks):
    """Takes background work and never does it: nothing polls Slurm in a unit test."""

    def spawn(self, name: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Close the work and give something that can be cancelled."""
        del name
        work.close()
        return cast("asyncio.Task[T]", asyncio.get_running_loop().create_future())


def offline_runtime(**options: Any) -> Runtime:
    """A Runtime whose client is never connected and which polls nothing."""
    client = Client(ClusterConfig(server="http://192.0.2.1"))
    options = {"environment": {}, **options}
    return Runtime(client, Caches(client), Events(client, "test"), Clusters(IdleTasks()), Options(**options))


_version = itertools.count(1)
_hours = itertools.count(1)


def put(runtime: Runtime, resource: Resource[Any], name: str, namespace: str = "ns", **members: Any) -> Any:
    """Put an object into its store as a new version and give its view; `metadata` is added to the name."""
    metadata = {"name": name, "namespace": namespace, "resourceVersion": str(next(_version))}
    document = {**members, "metadata": {**metadata, **members.get("metadata", {})}}
    view = msgspec.convert(document, resource.view)
    runtime.store(resource).put(view)
    return view


def due(queue: Queue) -> set[ObjectKey]:
    """The keys that wait in the queue, delayed and resting ones too; they are taken out."""
    waiting, now = queue._set, asyncio.get_running_loop().time() + 3600 * next(_hours)
    found: set[ObjectKey] = set()
    while (item := waiting.take(now)) is not None:
        waiting.done(item.key, now)
        found.add(item.key)
    return found


class World(NamedTuple):
    """A Runtime and the queue of the kind that is under test."""

    runtime: Runtime
    queue: Queue

    def put(self, resource: Resource[Any], name: str, **members: Any) -> Any:
        """Put an object into its store."""
        return put(self.runtime, resource, name, **members)

    def remove(self, resource: Resource[Any], name: str) -> None:
        """Take an object out of its store."""
        self.runtime.store(resource).remove(ObjectKey("ns", name))

    def due(self) -> set[ObjectKey]:
        """The keys that wait to be reconciled; they are taken out."""
        return due(self.queue)


def world_of(register: Callable[[Runtime], None]) -> World:
    """Nothing yet but the watches of a kind."""
    runtime = offline_runtime()
    register(runtime)
    return World(runtime, runtime.controllers[0].queue)


def owned_by(kind: str, name: str) -> dict[str, Any]:
    """Metadata of a child of one of our kinds."""
    owner = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": kind, "name": name, "uid": "u"}
    return {"ownerReferences": [{**owner, "controller": True}]}
