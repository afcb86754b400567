"""A way to a server that can be cut, held closed, and led to another server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class TcpProxy:
    """Copies bytes between its port and `target`, a port of the loopback address."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.connections = 0
        self._closed = False
        self._writers: set[asyncio.StreamWriter] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["TcpProxy"]:
        """Listen on a free port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            self.cut()
            server.close()
            await server.wait_closed()

    def cut(self) -> None:
        """Break every connection without a farewell and let no new one through."""
        self._closed = True
        for writer in self._writers:
            writer.transport.abort()

    def mend(self, target: int | None = None) -> None:
        """Let connections through again, to another server if one is given."""
        self.target = target or self.target
        self._closed = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if not self._closed:
                await self._connect(reader, writer)
        except OSError:
            pass  # cut: that is what this proxy is for
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        self._writers.add(back)
        self.connections += 1
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, back))
                group.create_task(_copy(there, writer))
        except* OSError:
            pass
        finally:
            self._writers.discard(back)
            back.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65536):
        writer.write(chunk)
        await writer.drain()
    raise ConnectionResetError  # one side has ended: end the other too
