"""A request or watch that is cancelled at any moment, TLS handshake included, leaves no socket behind."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from coil.kube.client import Client
from coil.kube.config import ClusterConfig
from coil.kube.core import PODS
from coil.kube.errors import Unavailable
from tests.support.kubeserver import KubeServer
from tests.support.tls import self_signed

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest_asyncio.fixture(params=["http", "https"])
async def config(
    request: pytest.FixtureRequest, contexts: tuple[ssl.SSLContext, ssl.SSLContext]
) -> AsyncIterator[ClusterConfig]:
    theirs, ours = contexts if request.param == "https" else (None, None)
    server = KubeServer()
    await server.put("a")
    async with server.running(theirs):
        yield ClusterConfig(server=server.url, tls=ours)


async def get(client: Client) -> None:
    await client.get(PODS, "a", "ns")


async def watch(client: Client) -> None:
    async for _ in client.watch(PODS, resource_version="100"):
        pass


@pytest.mark.parametrize("call", [get, watch])
@pytest.mark.parametrize("pause", [0.0, 0.0005])
async def test_nothing_is_left_behind(
    config: ClusterConfig, call: Callable[[Client], Awaitable[None]], pause: float
) -> None:
    for rounds in range(30):
        client = Client(config)
        async with client:
            task = asyncio.ensure_future(call(client))
            for _ in range(rounds):
                await asyncio.sleep(pause)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        assert client._transport._sockets.open == [], f"cancelled after {rounds} rounds"


async def test_cancelled_watches_leave_nothing_while_the_client_lives(config: ClusterConfig) -> None:
    """A watch that is cut off and opened again for months must not gather sockets."""
    async with Client(config) as client:
        for _ in range(20):
            task = asyncio.ensure_future(watch(client))
            await asyncio.sleep(0.01)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        async with asyncio.timeout(5):
            while len(client._transport._sockets.open) > 1:  # noqa: ASYNC110 -- aiohttp sweeps every 2 s
                await asyncio.sleep(0.05)


async def test_a_server_that_is_not_trusted_is_refused(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext], tmp_path: Path
) -> None:
    _, others = self_signed(tmp_path)
    async with KubeServer().running(contexts[0]) as server:
        for tls in (others, None):
            async with Client(ClusterConfig(server=server.url, tls=tls)) as client:
                with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
                    await client.get(PODS, "a", "ns")
