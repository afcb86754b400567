"""The webhook process: answers the API server's questions about our kinds (spec: control-plane 13, 15).

    python -m coil.service.webhook --cert-dir /certificates

Every replica answers; the Lease is held for compatibility only and gates nothing. Ready once the TLS
server accepts connections. Exit codes as those of the manager.
"""

import asyncio
import contextlib
import socket
import ssl
import sys
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from aiohttp import web

from coil.admission.certificates import Certificates
from coil.admission.renewal import Renewal
from coil.admission.server import application
from coil.kube.client import Client
from coil.kube.config import ClusterConfig
from coil.kube.lease import LeadershipLostError, Lease
from coil.kube.transport import Limits
from coil.service import process
from coil.service.http import SHUTDOWN_S, Handler, ok, serving
from coil.service.secure import metrics_server
from coil.service.settings import Address, WebhookSettings, address
from coil.support.log import get_logger
from coil.support.tasks import Tasks

LEASE = "slurm-operator-webhook"
READ = Limits(deadline=3.0, connect=2.0)
"""Reads for a rule: an answer must come before the API server stops waiting."""
LINGER_S = 3.0
"""Seconds to go on answering once told to stop: the API server still sends questions here until it has
seen that this replica is no longer ready."""

log = get_logger("webhook")


def main(argv: Sequence[str] | None = None) -> int:
    """Run until a signal comes; the result is the exit code."""
    return process.main("webhook", WebhookSettings, run, argv)


async def run(settings: WebhookSettings, config: ClusterConfig, stop: asyncio.Event) -> None:
    """Answer until `stop` is set.

    Raises:
        OSError: a listen address cannot be used.
        ValueError: a listen address is none.
    """
    where = _server_address(settings)
    ready = asyncio.Event()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(config, READ))
        probes = {"/healthz": ok, "/readyz": _readiness(ready)}
        await stack.enter_async_context(serving(address(settings.health_addr), probes))
        await stack.enter_async_context(serving(*metrics_server(settings, client)))
        tasks = await stack.enter_async_context(Tasks())
        certificates = Certificates(Path(settings.cert_dir))
        tasks.spawn("certificates", certificates.run())
        namespace = settings.leader_elect_namespace or client.namespace
        if settings.leader_elect:
            tasks.spawn("lease", _hold_lease(client, namespace))
        if settings.renew_certificate:
            renewal = Renewal(client, namespace, settings.renew_certificate, settings.registration)
            tasks.spawn("renewal", renewal.run())
        if not await _has_certificate(tasks, certificates, stop):
            return
        async with _answering(client, where, certificates.tls):
            ready.set()
            await stop.wait()
            ready.clear()
            await asyncio.sleep(LINGER_S)


def _server_address(settings: WebhookSettings) -> Address:
    where = address(settings.server_addr)
    if where is None:
        raise ValueError(f"--server-addr is {settings.server_addr!r}; write host:port or :port")
    return where


def _readiness(ready: asyncio.Event) -> Handler:
    async def answer(_request: web.Request) -> web.Response:
        if ready.is_set():
            return web.Response(text="ok")
        return web.Response(status=503, text="no certificate yet, or told to stop")

    return answer


async def _has_certificate(tasks: Tasks, certificates: Certificates, stop: asyncio.Event) -> bool:
    """Wait for the first certificate; False when told to stop before it came."""
    waiting = {
        tasks.spawn("first certificate", certificates.loaded.wait()),
        tasks.spawn("stop", stop.wait()),
    }
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    return not stop.is_set()


@asynccontextmanager
async def _answering(client: Client, where: Address, tls: ssl.SSLContext) -> AsyncGenerator[None, None]:
    runner = web.AppRunner(application(client), access_log=None, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, where.host, where.port, ssl_context=tls).start()
        log.info("serving", port=runner.addresses[0][1])
        yield
    finally:
        await runner.cleanup()


async def _hold_lease(client: Client, namespace: str) -> None:
    """Be the holder whenever it is our turn; losing it is no reason to stop answering."""
    lease = Lease(client, namespace, LEASE, f"{socket.gethostname()}_{uuid.uuid4()}")
    while True:
        with contextlib.suppress(LeadershipLostError):
            await lease.run(_forever)


async def _forever() -> None:
    await asyncio.Event().wait()


if __name__ == "__main__":
    sys.exit(main())
