"""One HTTP exchange with slurmrestd: deadline, token, and what a status means."""

import asyncio
from http import HTTPStatus
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from coil.slurm import http1, metrics
from coil.slurm.errors import (
    BadReply,
    ControllerDown,
    ErrorDetail,
    NotFound,
    NotServed,
    Rejected,
    SlurmError,
    Unauthorized,
    Unreachable,
)
from coil.slurm.tokens import Tokens
from coil.slurm.wire import Envelope, NotModified

TOKEN_HEADER = "X-SLURM-USER-TOKEN"  # noqa: S105 -- the name of a header

_NOT_FOUND = frozenset({2018, 2053})
"""ESLURM_INVALID_NODE_NAME, ESLURM_RESERVATION_INVALID."""
_REFUSED_USER = frozenset({1007, 2010})
"""SLURM_PROTOCOL_AUTHENTICATION_ERROR, ESLURM_USER_ID_MISSING."""
_UNAUTHORIZED = frozenset({401, 403, 511})
"""401 without a token, 511 with one that slurmctld refuses (measured)."""
_CONTROLLER_DOWN = frozenset({502, 503, 504})
"""502 when slurmctld refuses connections for 10 s, 504 when it does not answer (measured)."""


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """A request: `path` below the base URL, already quoted; `deadline_s` for the whole exchange."""

    method: str
    path: str
    query: str = ""
    body: msgspec.Struct | None = None
    deadline_s: float

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Wire(Protocol):
    """Carries one encoded request to a host and port and brings the answer."""

    async def __call__(self, host: str, port: int, request: bytes) -> http1.Answer:
        """See `http1.exchange`, which is the real one."""
        ...


class Transport:
    """Sends exchanges to one slurmrestd; the address may change between two of them."""

    def __init__(self, base_url: str, tokens: Tokens, wire: Wire = http1.exchange) -> None:
        self.base_url = ""
        self._tokens = tokens
        self._wire = wire
        self.retarget(base_url)

    def retarget(self, base_url: str) -> bool:
        """Send the next exchanges to another address; False when it is the same.

        Raises:
            ValueError: the address is not `http://HOST[:PORT]`.
        """
        parts = urlsplit(base_url)
        if parts.scheme != "http" or not parts.hostname or parts.path.rstrip("/"):
            raise ValueError(f"address of slurmrestd {base_url!r}: expected http://HOST:PORT")
        self._host, self._port, self._netloc = parts.hostname, parts.port or 80, parts.netloc
        before, self.base_url = self.base_url, base_url.rstrip("/")
        return before != self.base_url

    async def send(self, exchange: Exchange) -> bytes | NotModified:
        """Return the body of a successful answer.

        A refused token had no effect, so the request is repeated with another while there is one.

        Raises:
            SlurmError: one of its kinds, by what the caller may conclude.
        """
        token = self._tokens()
        while True:
            try:
                body = await self._send(exchange, token)
            except Unauthorized:
                token = self._tokens.refused(token)
                if not token:
                    raise
            else:
                self._tokens.taken(token)
                return body

    async def _send(self, exchange: Exchange, token: str) -> bytes | NotModified:
        labels = (exchange.method, metrics.call_name(exchange.path))
        try:
            with metrics.seconds.labels(*labels).time():
                status, body = await self._answer(exchange, token)
        except Unreachable:
            metrics.requests.labels(*labels, 0).inc()
            raise
        metrics.requests.labels(*labels, status).inc()
        metrics.received.labels(*labels).inc(len(body))
        if status == HTTPStatus.NOT_MODIFIED:
            return NotModified()
        if status != HTTPStatus.OK:
            raise failure(str(exchange), status, body)
        return body

    async def _answer(self, exchange: Exchange, token: str) -> http1.Answer:
        request = self._encoded(exchange, token)
        try:
            async with asyncio.timeout(exchange.deadline_s):
                return await self._wire(self._host, self._port, request)
        except TimeoutError:
            reason = f"{self.base_url}: no answer within {exchange.deadline_s:g} s"
            raise Unreachable(str(exchange), reason) from None
        except (OSError, http1.ProtocolError) as error:
            raise Unreachable(str(exchange), f"{self.base_url}: {_cause(error)}") from error

    def _encoded(self, exchange: Exchange, token: str) -> bytes:
        target = f"/{exchange.path}?{exchange.query}" if exchange.query else f"/{exchange.path}"
        headers = {TOKEN_HEADER: token, "Accept": "application/json"}
        body = None
        if exchange.method == "POST":
            headers["Content-Type"] = "application/json"
            body = msgspec.json.encode(exchange.body)
        return http1.encode(exchange.method, target, self._netloc, headers, body)


def _cause(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return str(error) or type(error).__name__


def failure(call: str, status: int, body: bytes) -> SlurmError:
    """Turn an answer that is no success into the error it stands for."""
    details = _details(body)
    numbers = {detail.error_number for detail in details}
    return _kind(status, numbers, told=bool(details))(
        call, _status_text(status), status=status, details=details
    )


def _kind(status: int, numbers: set[int], *, told: bool) -> type[SlurmError]:
    if status in _UNAUTHORIZED or numbers & _REFUSED_USER:
        return Unauthorized
    if status in _CONTROLLER_DOWN:
        return ControllerDown
    if numbers & _NOT_FOUND:
        return NotFound
    if status == HTTPStatus.NOT_FOUND:
        return NotServed
    return Rejected if told and status != HTTPStatus.OK else BadReply


def _details(body: bytes) -> tuple[ErrorDetail, ...]:
    try:
        return msgspec.json.decode(body, type=Envelope).errors
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body[:200].decode(errors="replace").strip()
        return (ErrorDetail(error=text),) if text else ()


def _status_text(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
