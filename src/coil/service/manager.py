"""The manager process: reconciles our kinds (spec: control-plane 15).

    python -m coil.service.manager --leader-elect

Starts in this order: flags, logging, servers for probes and metrics, caches, leadership, workers; ends in
the reverse order. Exit code 0 after a signal, 1 when it could not start or lost its leadership, 2 for a bad
command line.
"""

import asyncio
import os
import socket
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack

from prometheus_client import REGISTRY

from coil.kinds import unreadable
from coil.kinds.accounting import reconcile as accounting_kind
from coil.kinds.controller import reconcile as controller_kind
from coil.kinds.loginset import reconcile as loginset_kind
from coil.kinds.nodeset import reconcile as nodeset_kind
from coil.kinds.restapi import reconcile as restapi_kind
from coil.kinds.runtime import Options, Runtime
from coil.kinds.slurmclient import reconcile as slurmclient_kind
from coil.kinds.token import reconcile as token_kind
from coil.kube.cache import Caches
from coil.kube.client import Client
from coil.kube.config import ClusterConfig
from coil.kube.controller import Controller
from coil.kube.events import Events
from coil.kube.lease import Lease
from coil.service import process
from coil.service.definitions import tell_what_is_dropped
from coil.service.http import PROBES, serving
from coil.service.profile import PROFILES
from coil.service.secure import Server, metrics_server
from coil.service.settings import Settings, address
from coil.service.state import StateCollector
from coil.slurm.clusters import Clusters
from coil.support import log as logs
from coil.support.tasks import Tasks

LEASE = "slurm-operator"

DRAIN_S = 20.0
"""How long passes under way may take once the process is told to end; below a pod's 30 s of grace."""

FLUSH_S = 3.0
"""How long the last events may take."""

KINDS: Sequence[Callable[[Runtime], None]] = (
    accounting_kind.register,
    controller_kind.register,
    loginset_kind.register,
    nodeset_kind.register,
    restapi_kind.register,
    slurmclient_kind.register,
    token_kind.register,
    unreadable.register,
)

log = logs.get_logger("manager")


def main(argv: Sequence[str] | None = None) -> int:
    """Run until a signal comes; the result is the exit code."""
    return process.main("manager", Settings, run, argv)


def options(settings: Settings) -> Options:
    """What the kinds may know of the flags."""
    suffix = "_workers"
    names = [name for name in Settings.__struct_fields__ if name.endswith(suffix)]
    return Options(
        workers={name.removesuffix(suffix): getattr(settings, name) for name in names},
        propagated_node_conditions=settings.propagated_node_conditions,
        environment=dict(os.environ),
    )


async def run(settings: Settings, config: ClusterConfig, stop: asyncio.Event) -> None:
    """Run the manager until `stop` is set.

    Raises:
        OSError: a listen address cannot be used.
        ValueError: a listen address is none.
        ExceptionGroup: with LeadershipLostError, when another replica may lead now.
    """
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(config))
        for server in _servers(settings, client):
            await stack.enter_async_context(serving(*server))
        tasks = await stack.enter_async_context(Tasks())
        caches, events = Caches(client, settings.namespaces), Events(client, identity)
        runtime = Runtime(client, caches, events, Clusters(tasks), options(settings))
        for register in KINDS:
            register(runtime)
        collector = StateCollector(runtime)
        REGISTRY.register(collector)
        stack.callback(REGISTRY.unregister, collector)
        workers = Workers(runtime.controllers, stop)
        tasks.spawn("caches", caches.run())
        tasks.spawn("events", events.run())
        tasks.spawn("definitions", tell_what_is_dropped(client))
        life = tasks.spawn("life", _live(settings, client, identity, caches, workers))
        await asyncio.wait({life, tasks.spawn("stop", stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
        if not workers.begun:
            life.cancel()
        await asyncio.wait({life})
        await _flush(events)


async def _flush(events: Events) -> None:
    """Send what was noted last; a server that does not answer must not use up the pod's grace."""
    try:
        async with asyncio.timeout(FLUSH_S):
            await events.flush()
    except TimeoutError:
        log.warning("some events were not recorded")


class Workers:
    """The controllers' workers, from the moment this process leads until it is told to stop."""

    def __init__(self, controllers: Sequence[Controller], stop: asyncio.Event) -> None:
        self.begun = False
        self._controllers = controllers
        self._stop = stop

    async def run(self) -> None:
        """Work; once told to stop, let the passes under way end, but not for ever."""
        self.begun = True
        async with Tasks() as tasks:
            running = [tasks.spawn(controller.name, controller.run()) for controller in self._controllers]
            await self._stop.wait()
            for controller in self._controllers:
                controller.stop()
            await asyncio.wait(running, timeout=DRAIN_S)
        log.info("workers stopped")


async def _live(settings: Settings, client: Client, identity: str, caches: Caches, workers: Workers) -> None:
    """Caches are warm before leadership, workers come only after (spec: control-plane 15.2)."""
    await caches.sync()
    log.info("caches are filled", leader_election=settings.leader_elect)
    if not settings.leader_elect:
        await workers.run()
        return
    namespace = settings.leader_elect_namespace or client.namespace
    await Lease(client, namespace, LEASE, identity).run(workers.run)


def _servers(settings: Settings, client: Client) -> Iterator[Server]:
    yield address(settings.health_addr), PROBES, None
    yield metrics_server(settings, client)
    if settings.profile:
        yield address(settings.profile_addr), PROFILES, None


if __name__ == "__main__":
    sys.exit(main())
