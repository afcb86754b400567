"""A small API server that serves collections correctly until it is told to misbehave.

It keeps objects, versions and history like a real one, so that "what was deleted in a gap" has an
answer. Misbehaviour is scripted: `server.on_list(...)`, `on_watch(...)` and `on_request(...)` take
handlers for the next requests of that sort, each used once.
"""

import asyncio
import json
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

JsonObject = dict[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def status_body(code: int, reason: str, message: str = "") -> JsonObject:
    """A meta/v1 Status."""
    return {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message}


def refuse(code: int, reason: str = "", **headers: str) -> Handler:
    """Answer with an error; `Retry_After="1"` and the like become headers."""

    async def handler(_: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.json_response(status_body(code, reason, "scripted"), status=code, headers=named)

    return handler


def say(*lines: object, then: Callable[[web.Request], Awaitable[None]] | None = None) -> Handler:
    """Answer a watch with these lines (objects or raw bytes), then end or do `then`."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            raw = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
            await response.write(raw)
        if then is not None:
            await then(request)
        return response

    return handler


async def cut(request: web.Request) -> None:
    """Break the connection without a farewell."""
    assert request.transport is not None
    request.transport.abort()
    await asyncio.sleep(0)


async def silence(_: web.Request) -> None:
    """Keep the connection open and say nothing, until the client goes."""
    await asyncio.Event().wait()


class KubeServer:
    """One collection at any path; see the module's text."""

    def __init__(self) -> None:
        self.url = ""
        self.version = 100
        self.objects: dict[tuple[str, str], JsonObject] = {}
        self.history: list[tuple[int, JsonObject]] = []
        self.oldest = 0
        self.requests: list[web.Request] = []
        self.open_watches = 0
        self.most_open = 0
        self._open = 0
        self._lists: deque[Handler] = deque()
        self._watches: deque[Handler] = deque()
        self._others: deque[Handler] = deque()
        self._changed = asyncio.Condition()
        self._generation = 0

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator["KubeServer"]:
        """Serve on a free port of the loopback address."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._route)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()

    # What the world does

    async def put(self, name: str, namespace: str = "ns", **members: Any) -> None:
        """Create or change an object."""
        self.version += 1
        old = self.objects.get((namespace, name))
        meta = {
            "name": name,
            "namespace": namespace,
            "uid": old["metadata"]["uid"] if old else f"uid-{self.version}",
            "resourceVersion": str(self.version),
        }
        item = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, **members}
        self.objects[namespace, name] = item
        await self._record("MODIFIED" if old else "ADDED", item)

    async def remove(self, name: str, namespace: str = "ns") -> None:
        """Delete an object."""
        self.version += 1
        item = self.objects.pop((namespace, name))
        item = {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.version)}}
        await self._record("DELETED", item)

    async def _record(self, kind: str, item: JsonObject) -> None:
        self.history.append((self.version, {"type": kind, "object": item}))
        async with self._changed:
            self._changed.notify_all()

    def compact(self) -> None:
        """Forget history and snapshots: older versions and tokens are answered with 410."""
        self.oldest = self.version

    async def end_watches(self) -> None:
        """End every open watch cleanly, as a server does at its own timeout."""
        self._generation += 1
        async with self._changed:
            self._changed.notify_all()

    # What it is told to do next

    def on_list(self, *handlers: Handler) -> None:
        """Handle the next lists so."""
        self._lists.extend(handlers)

    def on_watch(self, *handlers: Handler) -> None:
        """Handle the next watches so."""
        self._watches.extend(handlers)

    def on_request(self, *handlers: Handler) -> None:
        """Handle the next requests that are neither so."""
        self._others.extend(handlers)

    def count(self, sort: str) -> int:
        """How many lists (or pages), watches or others were asked for."""
        return sum(1 for request in self.requests if _sort(request) == sort)

    # Serving

    async def _route(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        sort = _sort(request)
        scripted = {"list": self._lists, "watch": self._watches, "other": self._others}[sort]
        ordinary = {"list": self._list, "watch": self._watch, "other": self._other}[sort]
        handler = scripted.popleft() if scripted else ordinary
        self._open += 1
        self.open_watches += sort == "watch"
        self.most_open = max(self.most_open, self._open)
        try:
            return await handler(request)
        finally:
            self._open -= 1
            self.open_watches -= sort == "watch"

    async def _list(self, request: web.Request) -> web.StreamResponse:
        limit, token = int(request.query.get("limit", 0)), request.query.get("continue")
        version, start = (int(part) for part in token.split(".")) if token else (self.version, 0)
        if token and version < self.oldest:
            return await refuse(410, "Expired")(request)
        items = sorted(self._in_scope(request), key=lambda item: item["metadata"]["name"])
        end = start + limit if limit else len(items)
        meta = {"resourceVersion": str(version)}
        if end < len(items):
            meta["continue"] = f"{version}.{end}"
        return web.json_response({"kind": "PodList", "metadata": meta, "items": items[start:end]})

    def _in_scope(self, request: web.Request) -> list[JsonObject]:
        path = request.path.split("/")
        namespace = path[path.index("namespaces") + 1] if "namespaces" in path else None
        return [item for (where, _), item in self.objects.items() if namespace in (None, where)]

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        version, generation = int(request.query["resourceVersion"]), self._generation
        response = web.StreamResponse()
        await response.prepare(request)
        if version < self.oldest:
            gone = {"type": "ERROR", "object": status_body(410, "Expired")}
            await response.write(json.dumps(gone).encode() + b"\n")
            return response
        while generation == self._generation:
            for at, line in self.history:
                if at > version:
                    version = at
                    await response.write(json.dumps(line).encode() + b"\n")
            async with self._changed:
                await self._changed.wait_for(
                    lambda: self.version > version or generation != self._generation  # noqa: B023 -- read now
                )
        return response

    async def _other(self, request: web.Request) -> web.StreamResponse:
        path = request.path.split("/")
        key = (path[path.index("namespaces") + 1], path[-1])
        if key not in self.objects:
            return await refuse(404, "NotFound")(request)
        return web.json_response(self.objects[key])


def _sort(request: web.Request) -> str:
    if request.method == "GET" and request.query.get("watch"):
        return "watch"
    if request.method == "GET" and request.path.endswith(("/pods", "/nodes", "/configmaps")):
        return "list"
    return "other"


async def eventually(condition: Callable[[], object], what: str, deadline: float = 5.0) -> None:
    """Wait until `condition` holds; TimeoutError names `what` was waited for."""
    try:
        async with asyncio.timeout(deadline):
            while not condition():  # noqa: ASYNC110 -- of another process' making, or many events'
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise TimeoutError(f"within {deadline:g} s it never came true that {what}") from None
