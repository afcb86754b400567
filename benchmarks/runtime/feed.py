"""A process that plays the API server: pages and a storm of changes, encoded beforehand.

It costs its own CPU, not that of the process that is measured.
"""

import asyncio
import itertools
import json
import sys
from urllib.parse import parse_qs, urlsplit

from benchmarks.runtime import objects

VERSION = 100_000
"""The version of every list; the storm's changes come after it."""


class Feed:
    """Lists of `count` pods and nodes, and `count` changes of pods once `/storm` was asked for."""

    def __init__(self, count: int) -> None:
        self.pods = [objects.pod(number, number + 1) for number in range(count)]
        self.nodes = [objects.node(number, number + 1) for number in range(count)]
        self.lines = [
            b'{"type":"MODIFIED","object":' + objects.pod(number, VERSION + number + 1, ready=False) + b"}\n"
            for number in range(count)
        ]
        self.storm = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while line := await reader.readline():
                while (await reader.readline()).strip():
                    pass
                await self._answer(line.split()[1].decode(), writer)
        except ConnectionError:
            return
        finally:
            writer.close()

    async def _answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path == "/storm":
            self.storm.set()
            await _whole(writer, b"{}")
        elif "watch" in query:
            await self._watch(url.path, writer)
        else:
            await _whole(writer, self._page(url.path, query))

    def _page(self, path: str, query: dict[str, str]) -> bytes:
        items = self.pods if path.endswith("/pods") else self.nodes
        start = int(query.get("continue", 0))
        end = start + int(query.get("limit", len(items)))
        meta: dict[str, object] = {"resourceVersion": str(VERSION)}
        if end < len(items):
            meta["continue"] = str(end)
        return b'{"metadata":%s,"items":[%s]}' % (json.dumps(meta).encode(), b",".join(items[start:end]))

    async def _watch(self, path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        await self.storm.wait()
        if path.endswith("/pods"):
            for line in self.lines:
                writer.write(b"%x\r\n%s\r\n" % (len(line), line))
                await writer.drain()
        await asyncio.Event().wait()


async def _whole(writer: asyncio.StreamWriter, body: bytes) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    writer.write(body)
    await writer.drain()


async def main(count: int) -> None:
    """Serve until killed; the first line of output is the port."""
    feed = Feed(count)
    server = await asyncio.start_server(feed.serve, "127.0.0.1", 0)
    sizes = [len(item) for item in itertools.chain(feed.pods, feed.nodes)]
    print(server.sockets[0].getsockname()[1], sum(sizes) // len(sizes), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
