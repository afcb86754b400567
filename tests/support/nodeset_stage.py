"""NodeSets between a real API server and a real slurmctld; the tests play scheduler, kubelet and slurmd."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from coil.api import keys
from coil.kinds.nodeset.reconcile import register
from coil.kinds.runtime import Options, Runtime
from coil.kube.cache import Caches
from coil.kube.client import Client
from coil.kube.config import load
from coil.kube.events import Events
from coil.slurm.clusters import Clusters
from coil.support.objects import ObjectKey
from coil.support.tasks import Tasks
from lab.apiserver import ApiServer
from tests.support import slurm
from tests.support.apiserver import kubectl
from tests.support.manager import KEYS, Namespace, controller, ours

T = TypeVar("T")


class Stage:
    """One namespace, its Slurm cluster, and a running NodeSet controller."""

    def __init__(self, server: ApiServer, space: Namespace, cluster: slurm.SlurmCluster) -> None:
        self.server, self.space, self.cluster = server, space, cluster
        self.machines = set[str]()

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.to_thread(function, *arguments)

    async def apply(self, *objects: dict[str, Any]) -> None:
        await self.call(self.space.apply, *objects)

    async def pods(self) -> dict[str, dict[str, Any]]:
        pods = await self.call(self.space.objects, "pods")
        return {pod["metadata"]["name"]: pod for pod in pods}

    async def status(self, name: str = "gpu") -> dict[str, Any]:
        return (await self.call(self.space.get, "nodeset", name) or {}).get("status", {})

    async def nodes(self, names: str) -> None:
        """Slurmds register."""
        await self.call(self.cluster.create_nodes, names)

    async def scontrol(self, *arguments: str) -> str:
        return await self.call(self.cluster.run, "scontrol", *arguments)

    async def scale(self, replicas: int) -> None:
        await self.call(self.space.kubectl, "scale", "nodeset", "gpu", f"--replicas={replicas}")

    async def run_pods(self, *names: str) -> None:
        """Bind pods, start them and let them turn ready."""
        for number, name in enumerate(names):
            machine = f"{self.space.name}-{number}"
            if machine not in self.machines:
                self.machines.add(machine)
                await self.call(kubernetes_node, self.server, machine, f"{self.space.name}-machines")
            await self.call(self.run_pod, name, machine)

    def run_pod(self, name: str, node: str) -> None:
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}}
        self._post(f"pods/{name}/binding", binding | {"target": {"kind": "Node", "name": node}})
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
        status = json.dumps({"status": {"phase": "Running", "conditions": conditions}})
        self.space.kubectl("patch", "pod", name, "--subresource=status", "--type=strategic", "-p", status)

    def _post(self, path: str, body: dict[str, Any]) -> None:
        url = f"/api/v1/namespaces/{self.space.name}/{path}"
        kubectl(self.server, "create", "--raw", url, "-f", "-", stdin=json.dumps(body))

    async def end(self, *names: str) -> None:
        """The kubelet has stopped the pods."""
        await self.call(self.space.kubectl, "delete", "pod", *names, "--force", "--grace-period=0")

    async def eventually(self, check: Callable[[], Any], within: float = 20, what: str = "") -> Any:
        """Ask a coroutine function again and again until its answer is true."""
        answer: Any = None
        try:
            async with asyncio.timeout(within):
                while not (answer := await check()):  # noqa: ASYNC110 -- other processes set no event
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"not within {within:g} s: {what}; last answer {answer!r}") from None
        return answer


@asynccontextmanager
async def staged(server: ApiServer, cluster: slurm.SlurmCluster, url: str = "") -> AsyncIterator[Stage]:
    """A stage; its controller asks slurmrestd at `url`, directly when that is empty."""
    space = await asyncio.to_thread(Namespace, server)
    async with Client(load(str(server.kubeconfig))) as client, Tasks() as tasks:
        caches, events, clusters = Caches(client, [space.name]), Events(client, "test"), Clusters(tasks)
        runtime = Runtime(client, caches, events, clusters, Options())
        register(runtime)
        clusters.put(ObjectKey(space.name, "alba"), url or cluster.base_url, cluster.jwt_key)
        for name, work in (("caches", caches.run()), ("events", events.run())):
            tasks.spawn(name, work)
        await caches.sync()
        (running,) = runtime.controllers
        tasks.spawn("controller", running.run())
        yield Stage(server, space, cluster)
        running.stop()


def nodeset(replicas: int, image: str = "registry.example/slurmd:1", **spec: Any) -> dict[str, Any]:
    return ours(
        "NodeSet",
        "gpu",
        controllerRef={"name": "alba"},
        replicas=replicas,
        slurmd={"image": image},
        logfile={"image": "registry.example/tools:1"},
        **spec,
    )


async def settle(stage: Stage, replicas: int, **spec: Any) -> None:
    """A NodeSet whose workers all run and are registered."""
    await stage.apply(KEYS, controller("alba"), nodeset(replicas, **spec))
    names = [f"gpu-{number}" for number in range(replicas)]

    async def made() -> bool:
        return set(await stage.pods()) == set(names)

    await stage.eventually(made, what="all pods are made")
    await stage.run_pods(*names)
    await stage.nodes(f"gpu-[0-{replicas - 1}]")

    async def counted() -> bool:
        status = await stage.status()
        return (status.get("readyReplicas"), status.get("slurmIdle")) == (replicas, replicas)

    await stage.eventually(counted, what="all workers are idle")


def shown_states(pod: dict[str, Any]) -> set[str]:
    conditions = pod["status"].get("conditions", [])
    prefix = keys.CONDITION_PREFIX
    return {c["type"].removeprefix(prefix) for c in conditions if c["type"].startswith(prefix)}


def kubernetes_node(server: ApiServer, name: str, pool: str) -> None:
    """A node whose kubelet is well; the taint that admission puts on new nodes is taken off."""
    document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": pool}}}
    kubectl(server, "create", "-f", "-", stdin=json.dumps(document))
    ready = json.dumps({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Test"}]}})
    kubectl(server, "patch", "node", name, "--subresource=status", "-p", ready)
    kubectl(server, "patch", "node", name, "-p", json.dumps({"spec": {"taints": None}}))
