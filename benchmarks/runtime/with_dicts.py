"""The baseline: follow pods and nodes with aiohttp, json and dicts, as most scripts do.

It keeps the same indices and merges changes into passes as coil does, so that what is compared is how
objects are read and held.
"""

import asyncio
import json
import sys
import time
from typing import Any

import aiohttp
import msgspec

from benchmarks.runtime.measuring import Lag, Result, memory_mb

JsonObject = dict[str, Any]

REST = 0.1
"""Seconds between two passes over changed owners."""


class Store:
    """Objects by key, and an index by owner."""

    def __init__(self) -> None:
        self.objects: dict[str, JsonObject] = {}
        self.by_owner: dict[str, dict[str, JsonObject]] = {}
        self.dirty: set[str] = set()

    def put(self, item: JsonObject) -> None:
        """Take in a state."""
        name = item["metadata"]["name"]
        self.objects[name] = item
        for owner in item["metadata"].get("ownerReferences", []):
            self.by_owner.setdefault(owner["name"], {})[name] = item
            self.dirty.add(owner["name"])


class Follower:
    """Lists, watches and passes."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session, self.url = session, url
        self.pods, self.nodes = Store(), Store()
        self.passes, self.changes, self.not_ready = 0, 0, 0

    async def list(self, plural: str, store: Store) -> None:
        """Read all pages."""
        token: str | None = None
        while token is None or token:
            query = {"limit": "500"} | ({"continue": token} if token else {})
            async with self.session.get(f"{self.url}/api/v1/{plural}", params=query) as reply:
                page = json.loads(await reply.read())
            for item in page["items"]:
                store.put(item)
            token = page["metadata"].get("continue", "")

    async def watch(self) -> None:
        """Take in changes of pods."""
        query = {"watch": "1", "resourceVersion": "1"}
        async with self.session.get(f"{self.url}/api/v1/pods", params=query) as reply:
            async for line in reply.content:
                self.pods.put(json.loads(line)["object"])
                self.changes += 1

    async def work(self) -> None:
        """Pass over the owners whose pods have changed."""
        while True:
            await asyncio.sleep(REST)
            while self.pods.dirty:
                self.passes += 1
                pods = self.pods.by_owner[self.pods.dirty.pop()].values()
                self.not_ready = sum(not ready(pod) for pod in pods)


def ready(pod: JsonObject) -> bool:
    """Whether the pod's Ready condition is true."""
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"]["conditions"])


async def measure(url: str, count: int) -> Result:
    """Sync, then take a storm of changes."""
    result = Result("json + dict")
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as tasks:
        follower = Follower(session, url)
        result.empty_mb, cpu = memory_mb(), time.process_time()
        await asyncio.gather(follower.list("pods", follower.pods), follower.list("nodes", follower.nodes))
        result.sync_cpu, result.memory_mb = time.process_time() - cpu, memory_mb() - result.empty_mb
        running = [tasks.create_task(follower.watch()), tasks.create_task(follower.work())]
        await asyncio.sleep(0.5)
        await storm(follower, count, result)
        for task in running:
            task.cancel()
    return result


async def storm(follower: Follower, count: int, result: Result) -> None:
    """Ask for the storm and wait until the last pass has seen all of it."""
    follower.passes, lag = 0, Lag()
    cpu, wall = time.process_time(), time.perf_counter()
    async with lag.sampled():
        async with follower.session.get(f"{follower.url}/storm") as reply:
            await reply.read()
        while follower.changes < count or follower.pods.dirty:  # noqa: ASYNC110 -- an Event would cost
            await asyncio.sleep(0.01)
        result.storm_wall = time.perf_counter() - wall
    result.storm_cpu, result.passes = time.process_time() - cpu, follower.passes
    result.storm_memory_mb, result.lag_p99_ms = memory_mb() - result.empty_mb, lag.p99_ms


if __name__ == "__main__":
    print(msgspec.json.encode(asyncio.run(measure(sys.argv[1], int(sys.argv[2])))).decode())
