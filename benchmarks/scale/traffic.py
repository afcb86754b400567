"""What goes to slurmrestd and comes back, counted from outside the operator."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

_CHUNK = 1 << 16
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_ONE = re.compile(r"(node|job|reservation)/[^/]+$")


class Traffic(msgspec.Struct, frozen=True):
    """Requests by method and path, and bytes that came back."""

    calls: Counter[str] = msgspec.field(default_factory=Counter)
    received: int = 0

    def __sub__(self, earlier: "Traffic") -> "Traffic":
        return Traffic(self.calls - earlier.calls, self.received - earlier.received)

    @property
    def total(self) -> int:
        """All requests."""
        return self.calls.total()


class Counted:
    """A way to slurmrestd that counts. Use it as `async with counted.listening(port)`."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._calls: Counter[str] = Counter()
        self._received = 0

    def so_far(self) -> Traffic:
        """Everything since the start."""
        return Traffic(self._calls.copy(), self._received)

    @asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[None]:
        """Take connections on a loopback port while the block runs."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        try:
            yield
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._requests(reader, back))
                group.create_task(self._answers(there, writer))
        except* OSError:
            pass
        finally:
            for end in (writer, back):
                end.transport.abort()

    async def _requests(self, reader: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        """Pass requests on one by one; a body has a length (both Go's and coil's client send one)."""
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1])) if length else b""
            except asyncio.IncompleteReadError:
                raise ConnectionResetError from None  # the client is done: end the other direction too
            self._calls[_kind(head)] += 1
            back.write(head + body)
            await back.drain()

    async def _answers(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await there.read(_CHUNK):
            self._received += len(chunk)
            writer.write(chunk)
            await writer.drain()
        writer.close()
        raise ConnectionResetError


def _kind(head: bytes) -> str:
    """`POST nodes/` of a request; names of single objects are left out."""
    method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
    path = target.partition("?")[0].removeprefix("/slurm/").lstrip("/")
    if path.startswith("v0."):
        path = path.partition("/")[2]
    return method + " " + _ONE.sub(r"\1/NAME", path)
