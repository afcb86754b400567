"""The limit of this API server, scheduler and kubelet: pods made and deleted by a plain loop.

Small pods show what the machine can do; pods like the operator's, in a Service like theirs, what it can do
with the pods that a worker needs.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from benchmarks.scale.watching import Watched
from coil.kube import core
from coil.kube.client import Client


class Bare(msgspec.Struct, frozen=True):
    """Seconds until all of it could be seen."""

    created_s: float
    running_s: float
    half_deleted_s: float
    rest_deleted_s: float


Manifest = dict[str, Any]


async def measure(
    client: Client, namespace: str, watched: Watched, pods: Sequence[Manifest], patience: float
) -> Bare:
    """Make pods, delete one half and then the other; the client bounds how many requests are open."""
    names, count = [pod["metadata"]["name"] for pod in pods], len(pods)
    begin = time.monotonic()
    async with asyncio.TaskGroup() as group:
        group.create_task(_create(client, namespace, pods))
        await watched.until(lambda: len(watched.pods) >= count, patience, "all bare pods are made")
        created = time.monotonic() - begin
    await watched.until(lambda: len(watched.ready) >= count, patience, "all bare pods run")
    running = time.monotonic() - begin
    half = await _delete(client, namespace, watched, names[count // 2 :], patience)
    rest = await _delete(client, namespace, watched, names[: count // 2], patience)
    return Bare(created, running, half, rest)


async def _create(client: Client, namespace: str, pods: Sequence[Manifest]) -> None:
    async with asyncio.TaskGroup() as group:
        for pod in pods:
            group.create_task(client.create(core.PODS, pod, namespace))


async def _delete(
    client: Client, namespace: str, watched: Watched, names: Sequence[str], patience: float
) -> float:
    begin = time.monotonic()
    left = len(watched.pods) - len(names)
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(client.delete(core.PODS, name, namespace))
        await watched.until(lambda: len(watched.pods) <= left, patience, "bare pods are gone")
    return time.monotonic() - begin


def small(count: int) -> list[Manifest]:
    """The smallest pods there are."""
    spec = {
        "automountServiceAccountToken": False,
        "containers": [{"name": "one", "image": "registry.example/small:1"}],
    }
    names = (f"bare-{number:05d}" for number in range(count))
    return [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec} for name in names]


def alike(live: Manifest, count: int) -> list[Manifest]:
    """Pods like a live one, but for its name wherever that is said, and nobody's."""
    own, spec = live["metadata"]["name"], {k: v for k, v in live["spec"].items() if k != "nodeName"}
    text = json.dumps({**anew(live), "spec": spec})
    return [json.loads(text.replace(own, f"alike-{number:05d}")) for number in range(count)]


def anew(live: Manifest) -> Manifest:
    """The manifest by which an object like a live one can be made, without owner and status."""
    meta = {k: v for k, v in live["metadata"].items() if k in ("name", "labels", "annotations")}
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": meta, "spec": live["spec"]}
