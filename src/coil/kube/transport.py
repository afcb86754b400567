"""HTTP to the API server: deadlines, credentials, turning-away and errors. Knows no kinds."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

import aiohttp
import msgspec
from aiohttp.connector import NEEDS_CLEANUP_CLOSED
from yarl import URL

from coil.kube.config import ClusterConfig
from coil.kube.credentials import CredentialsError
from coil.kube.errors import Timeout, Unauthorized, Unavailable, from_reply
from coil.kube.sockets import Sockets
from coil.support import metrics

_JSON = "application/json"
# The server is near and packs lists slowly: unpacked ones cost less CPU time on both sides.
HEADERS = {"Accept": _JSON, "Accept-Encoding": "identity", "User-Agent": "coil"}


IDLE_S = 60.0
"""How long an idle connection is kept; the API server keeps it for 90 s. A new one costs as much as some
requests."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How hard to lean on the server.

    There is no rate limit here: fairness between clients is the server's job, which answers 429.

    Args:
        concurrent: requests under way at once; watches do not count.
        deadline: seconds for a request, retries after 429 and 503 included.
        connect: seconds to open a connection.
        silence: seconds a watch may bring nothing, not even a bookmark (they come each minute).
    """

    concurrent: int = 64
    deadline: float = 30.0
    connect: float = 10.0
    silence: float = 70.0


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One call. `query` members that are None or empty are left out."""

    method: str
    path: str
    query: Mapping[str, str | None] = {}
    body: bytes | None = None
    content_type: str = _JSON
    deadline: float | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class _Reply(msgspec.Struct, frozen=True):
    code: int
    retry_after: float | None
    body: bytes


def _retry_after(reply: aiohttp.ClientResponse) -> float | None:
    """Seconds to wait when the server turned the request away unprocessed, else None."""
    if reply.status not in {429, 503}:
        return None
    text = reply.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None


class LineBuffer:
    """Cuts a stream of chunks into lines; a long line costs its length once, not once per chunk."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without their ends; blank ones are left out."""
        *ends, rest = chunk.split(b"\n")
        if not ends:
            self._parts.append(rest)
            return []
        ends[0] = b"".join((*self._parts, ends[0]))
        self._parts = [rest]
        return [line for line in ends if line.strip()]


class Transport:
    """A session with one API server; use it as `async with Transport(config) as transport`."""

    def __init__(self, config: ClusterConfig, limits: Limits | None = None) -> None:
        self._config = config
        self._limits = limits or Limits()
        self._slots = asyncio.Semaphore(self._limits.concurrent)
        self._base = URL(config.server)
        self._sockets = Sockets()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=IDLE_S,
            ssl=self._config.tls or True,
            socket_factory=self._sockets.make,
            # On Python before 3.12.8 and 3.13.1 a TLS connection may stay open after it was closed.
            enable_cleanup_closed=NEEDS_CLEANUP_CLOSED,
        )
        self._session = aiohttp.ClientSession(connector=connector, headers=HEADERS)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session:
            await self._session.close()
            await self._sockets.end()

    async def call(self, request: Request) -> bytes:
        """Send, wait out 429 and 503 as the server asks, and return the body.

        Raises:
            ApiError: the subclass that fits; Timeout when the deadline passes.
        """
        try:
            async with asyncio.timeout(request.deadline or self._limits.deadline) as deadline:
                return await self._until_taken(request, deadline.when() or 0.0)
        except TimeoutError as error:
            seconds = request.deadline or self._limits.deadline
            raise Timeout(message=f"no answer within {seconds:g} s", doing=str(request)) from error

    async def _until_taken(self, request: Request, deadline: float) -> bytes:
        refused = False
        while True:
            async with self._slots:
                reply = await self._send(request)
            if reply.code < 400:  # noqa: PLR2004 -- HTTP
                return reply.body
            if reply.code == 401 and not refused:  # noqa: PLR2004 -- HTTP: a rotated token
                refused = True
                self._config.credentials.refused()
                continue
            wait = reply.retry_after
            if wait is None or asyncio.get_running_loop().time() + wait >= deadline:
                raise from_reply(reply.code, reply.body, doing=str(request))
            await asyncio.sleep(wait)

    async def _send(self, request: Request) -> _Reply:
        async with self._open(request) as reply:
            return _Reply(reply.status, _retry_after(reply), await reply.read())

    @asynccontextmanager
    async def _open(
        self, request: Request, silence: float | None = None
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        """Send a request and keep its reply open; every way of failing becomes an ApiError."""
        if self._session is None:
            raise RuntimeError("the transport is not open; use it in an `async with` block")
        try:
            async with self._session.request(
                request.method,
                self._base.joinpath(request.path.lstrip("/")).with_query(
                    {name: value for name, value in request.query.items() if value}
                ),
                data=request.body,
                headers=await self._headers(request),
                timeout=aiohttp.ClientTimeout(total=None, connect=self._limits.connect, sock_read=silence),
            ) as reply:
                self._count(request, str(reply.status))
                yield reply
        except aiohttp.ServerTimeoutError as error:
            self._count(request, "<error>")
            raise Timeout(message=str(error) or "no answer", doing=str(request)) from error
        except (aiohttp.ClientError, ConnectionError) as error:
            self._count(request, "<error>")
            raise Unavailable(message=f"{type(error).__name__}: {error}", doing=str(request)) from error

    async def _headers(self, request: Request) -> dict[str, str]:
        headers: dict[str, str] = {}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        try:
            who = await self._config.credentials.header(asyncio.get_running_loop().time())
        except CredentialsError as error:
            raise Unauthorized(message=str(error), doing=str(request)) from error
        return headers | ({"Authorization": who} if who else {})

    def _count(self, request: Request, code: str) -> None:
        metrics.requests.labels(code, request.method, self._base.authority).inc()

    async def lines(self, request: Request) -> AsyncGenerator[bytes]:
        """The lines of a streamed reply as they come; ends when the server ends it cleanly.

        Lines may be of any length (aiohttp's own reader gives up at 64 KiB; a ConfigMap has 1 MiB).

        Raises:
            Timeout: nothing came for `Limits.silence` seconds.
            ApiError: the request was refused, or the connection broke.
        """
        async with self._open(request, self._limits.silence) as reply:
            if reply.status >= 400:  # noqa: PLR2004 -- HTTP
                await self._refuse(request, reply)
            lines = LineBuffer()
            async for chunk in reply.content.iter_any():
                for line in lines.feed(chunk):
                    yield line

    async def _refuse(self, request: Request, reply: aiohttp.ClientResponse) -> None:
        body = await reply.read()
        if reply.status == 401:  # noqa: PLR2004 -- HTTP
            self._config.credentials.refused()
        raise from_reply(reply.status, body, doing=str(request))
