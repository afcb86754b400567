"""The small HTTP servers of a process: probes, metrics, profiles.

Each has its own address, so each is one aiohttp site with a few GET paths.
"""

import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.exposition import choose_encoder

from coil.service.settings import Address

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

SHUTDOWN_S = 2.0
"""How long a request that is being answered may take once the process wants to end."""


@asynccontextmanager
async def serving(
    address: Address | None, handlers: Mapping[str, Handler], tls: ssl.SSLContext | None = None
) -> AsyncGenerator[int | None, None]:
    """Serve `handlers` (path to handler) while the block runs; gives the port, None without an address.

    Raises:
        OSError: the address cannot be used.
    """
    if address is None:
        yield None
        return
    app = web.Application()
    app.add_routes([web.get(path, handler) for path, handler in handlers.items()])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, address.host, address.port, ssl_context=tls).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def ok(_request: web.Request) -> web.Response:
    """The answer of a probe: a process that can answer is healthy (spec: control-plane 15.3)."""
    return web.Response(text="ok")


PROBES: Mapping[str, Handler] = {"/healthz": ok, "/readyz": ok}


def metrics(registry: CollectorRegistry = REGISTRY) -> Handler:
    """A handler that writes `registry` in the format which the scraper asks for."""

    async def answer(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(registry), headers={"Content-Type": content_type})

    return answer
