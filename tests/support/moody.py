"""An HTTP proxy before slurmrestd that answers as slurmrestd should not."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

MOODS = ("cut", "401", "404", "500", "empty", "half", "broken", "slow")
SLOW_S = 30.0


class MoodyProxy:
    """Leads to `target`; `mood` is "" or one of `MOODS`. "empty" and "half" concern lists of nodes."""

    def __init__(self, target: str) -> None:
        self.mood = ""
        self.url = ""
        self._target = target

    @asynccontextmanager
    async def running(self) -> AsyncIterator["MoodyProxy"]:
        """Listen on a free port of the loopback address."""
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(application, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        async with aiohttp.ClientSession() as self._session:
            await site.start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            try:
                yield self
            finally:
                await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        mood = self.mood
        if mood == "cut":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if mood.isdigit():
            return web.Response(status=int(mood), text="no")
        if mood == "slow":
            await asyncio.sleep(SLOW_S)
        status, body = await self._forward(request)
        return web.Response(
            status=status,
            body=_changed(mood, request, body) if status == 200 else body,
            content_type="application/json",
        )

    async def _forward(self, request: web.Request) -> tuple[int, bytes]:
        headers = {n: v for n, v in request.headers.items() if n.lower() not in ("host", "connection")}
        # "What changed since" would be answered by 304, without a list to change.
        query = "" if self.mood in ("empty", "half") else request.query_string
        url, body = f"{self._target}{request.path}?{query}", await request.read()
        async with self._session.request(request.method, url, headers=headers, data=body) as answer:
            return answer.status, await answer.read()


def _changed(mood: str, request: web.Request, body: bytes) -> bytes:
    if mood == "broken":
        return body[: len(body) // 2]
    if mood not in ("empty", "half") or not request.path.endswith("/nodes/") or request.method != "GET":
        return body
    reply: dict[str, Any] = json.loads(body)
    nodes = reply.get("nodes", [])
    reply["nodes"] = nodes[: len(nodes) // 2] if mood == "half" else []
    return json.dumps(reply).encode()
