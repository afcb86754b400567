"""Follow pods and nodes with coil's runtime: caches, indices, queue, controller."""

import asyncio
import sys
import time

import msgspec

from benchmarks.runtime.measuring import Lag, Result, memory_mb
from coil.kube.cache import Caches
from coil.kube.client import Client
from coil.kube.config import ClusterConfig
from coil.kube.controller import DONE, Controller
from coil.kube.controller import Result as PassResult
from coil.kube.core import NODES, PODS
from coil.kube.store import Change, Store
from coil.kube.transport import Request, Transport
from coil.kube.views import PodView
from coil.support.objects import ObjectKey
from coil.support.tasks import Tasks


class Follower:
    """What an operator keeps: two stores, two indices, one controller for the owners of pods."""

    def __init__(self, caches: Caches) -> None:
        self.pods: Store[PodView] = caches.store(PODS)
        self.nodes = caches.store(NODES)
        self.pods.add_index("owner", owners)
        self.pods.add_index("node", lambda pod: [pod.spec.node_name])
        self.controller = Controller("bench", self.reconcile, caches=[self.pods, self.nodes])
        self.pods.on_event(self.enqueue)
        self.passes = 0
        self.not_ready = 0
        self.changes = 0

    def enqueue(self, change: Change[PodView]) -> None:
        """A pod's change is work for its owner."""
        self.changes += 1
        for owner in owners(change.latest):
            self.controller.queue.add(ObjectKey(change.key.namespace, owner))

    async def reconcile(self, key: ObjectKey) -> PassResult:
        """Look at every pod of the owner, as a pass that finds nothing to do would."""
        self.passes += 1
        self.not_ready = sum(not pod.ready for pod in self.pods.by_index("owner", key.name))
        return DONE


def owners(pod: PodView) -> list[str]:
    """The name of the pod's controller."""
    owner = pod.metadata.controller
    return [owner.name] if owner else []


async def measure(url: str, count: int) -> Result:
    """Sync, then take a storm of changes."""
    result = Result("coil")
    config = ClusterConfig(server=url)
    async with Client(config) as client, Transport(config) as control, Tasks() as tasks:
        caches = Caches(client)
        follower = Follower(caches)
        result.empty_mb, cpu = memory_mb(), time.process_time()
        tasks.spawn("caches", caches.run())
        await caches.sync()
        result.sync_cpu, result.memory_mb = time.process_time() - cpu, memory_mb() - result.empty_mb
        tasks.spawn("controller", follower.controller.run())
        await asyncio.sleep(0.5)
        await storm(follower, control, count, result)
    return result


async def storm(follower: Follower, control: Transport, count: int, result: Result) -> None:
    """Ask for the storm and wait until the last pass has seen all of it."""
    follower.passes, follower.changes, lag = 0, 0, Lag()
    cpu, wall = time.process_time(), time.perf_counter()
    async with lag.sampled():
        await control.call(Request(method="GET", path="/storm"))
        while follower.changes < count or len(follower.controller.queue):  # noqa: ASYNC110 -- an Event would cost
            await asyncio.sleep(0.01)
        result.storm_wall = time.perf_counter() - wall
        await asyncio.sleep(1.1)  # the last rest of the queue
    result.storm_cpu, result.passes = time.process_time() - cpu, follower.passes
    result.storm_memory_mb, result.lag_p99_ms = memory_mb() - result.empty_mb, lag.p99_ms


if __name__ == "__main__":
    print(msgspec.json.encode(asyncio.run(measure(sys.argv[1], int(sys.argv[2])))).decode())
