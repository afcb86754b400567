"""The limit of this API server, scheduler and kubelet: small pods made and deleted by a plain loop."""

import asyncio
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


async def measure(client: Client, namespace: str, watched: Watched, count: int, patience: float) -> Bare:
    """Make `count` pods, delete one half and then the other; the client bounds how many requests are open."""
    names = [f"bare-{number:05d}" for number in range(count)]
    begin = time.monotonic()
    async with asyncio.TaskGroup() as group:
        group.create_task(_create(client, namespace, names))
        await watched.until(lambda: len(watched.pods) >= count, patience, "all bare pods are made")
        created = time.monotonic() - begin
    await watched.until(lambda: len(watched.ready) >= count, patience, "all bare pods run")
    running = time.monotonic() - begin
    half = await _delete(client, namespace, watched, names[count // 2 :], patience)
    rest = await _delete(client, namespace, watched, names[: count // 2], patience)
    return Bare(created, running, half, rest)


async def _create(client: Client, namespace: str, names: Sequence[str]) -> None:
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(client.create(core.PODS, _pod(name), namespace))


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


def _pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [{"name": "one", "image": "registry.example/small:1"}],
        },
    }
