"""HTTP/1.1 as slurmrestd speaks it: one request on one connection.

slurmrestd 26.05 sends every error answer twice, the second right behind the first one's
`Connection: Close`, and adds stray text to answers when the request says `Connection: close` (measured,
see docs/slurm.md). RFC 9112 forbids both and aiohttp drops the whole answer, error text included; so the
few rules needed are here: read exactly one answer, then close.
"""

import asyncio
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

_READ_AHEAD = 1 << 20
_CHUNK_SIZE = re.compile(rb"[0-9a-fA-F]{1,8}")
_NO_BODY = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


class ProtocolError(ValueError):
    """What came back is no HTTP answer, or only a part of one."""


class Answer(NamedTuple):
    """Status and body of an answer."""

    status: int
    body: bytes


async def exchange(host: str, port: int, request: bytes) -> Answer:
    """Send one encoded request and read its answer; the caller sets the deadline.

    Raises:
        OSError: no connection, or it was cut while sending.
        ProtocolError: it was cut within the answer, or the answer is none.
    """
    reader, writer = await asyncio.open_connection(host, port, limit=_READ_AHEAD)
    try:
        writer.write(request)
        await writer.drain()
        return await read_answer(reader)
    finally:
        # No wait for the peer: what it may still send is of no interest.
        writer.transport.abort()


def encode(method: str, target: str, host: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """Write a request.

    Raises:
        ValueError: a part has control characters, which would start another header or request.
    """
    lines = [
        f"{method} {target} HTTP/1.1",
        f"Host: {host}",
        *(f"{name}: {headers[name]}" for name in headers),
    ]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    if not all(line.isprintable() for line in lines):
        raise ValueError(f"{method} {target!r}: the request has control characters")
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    """Read exactly one answer."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        status, headers = _head(head.decode("latin-1"))
        body = b"" if status in _NO_BODY else await _body(reader, headers)
    except asyncio.IncompleteReadError as error:
        raise ProtocolError(f"the connection was cut after {len(error.partial)} bytes of an answer") from None
    except asyncio.LimitOverrunError:
        raise ProtocolError("no end of the headers within 1 MiB") from None
    return Answer(status, body)


def _head(text: str) -> tuple[int, dict[str, str]]:
    first, *lines = text.rstrip("\r\n").split("\r\n")
    version, _, rest = first.partition(" ")
    code = rest[:3]
    if not version.startswith("HTTP/1.") or not (code.isascii() and code.isdigit()):
        raise ProtocolError(f"not an HTTP answer: {first[:80]!r}")
    pairs = (line.partition(":") for line in lines)
    return int(code), {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return await _chunks(reader)
    length = headers.get("content-length")
    if length is None:
        return await reader.read()
    if not (length.isascii() and length.isdigit()):
        raise ProtocolError(f"content length {length!r} is no number")
    return await reader.readexactly(int(length))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        line = await reader.readuntil(b"\r\n")
        text = line.partition(b";")[0].strip()
        if not _CHUNK_SIZE.fullmatch(text):
            raise ProtocolError(f"chunk size {text[:20]!r} is no number")
        size = int(text, 16)
        body += await reader.readexactly(size)
        await reader.readexactly(2)
        if not size:
            return bytes(body)
