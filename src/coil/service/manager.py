"""The manager process: reconciles our kinds (spec: control-plane 15).

    python -m coil.service.manager --leader-elect

Starts in this order: flags, logging, servers for probes and metrics, caches, leadership, workers; ends in
the reverse order. Exit code 0 after a signal, 1 when it could not start or lost its leadership, 2 for a bad
command line.
"""

import asyncio
import os
import signal
import socket
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack

from lightkube.core.exceptions import ConfigError

from coil.kinds.controller import reconcile as controller_kind
from coil.kinds.nodeset import reconcile as nodeset_kind
from coil.kinds.restapi import reconcile as restapi_kind
from coil.kinds.runtime import Options, Runtime
from coil.kinds.slurmclient import reconcile as slurmclient_kind
from coil.kube.cache import Caches
from coil.kube.client import Client
from coil.kube.config import ClusterConfig, load
from coil.kube.controller import Controller
from coil.kube.events import Events
from coil.kube.lease import LeadershipLostError, Lease
from coil.service.flags import HelpRequested, UsageError, parse
from coil.service.http import PROBES, Handler, metrics, serving
from coil.service.profile import PROFILES
from coil.service.settings import Address, Settings, address
from coil.slurm.clusters import Clusters
from coil.support import log as logs
from coil.support.tasks import Tasks

LEASE = "slurm-operator"

DRAIN_S = 20.0
"""How long passes under way may take once the process is told to end; below a pod's 30 s of grace."""

KINDS: Sequence[Callable[[Runtime], None]] = (
    controller_kind.register,
    nodeset_kind.register,
    restapi_kind.register,
    slurmclient_kind.register,
)

log = logs.get_logger("manager")


def main(argv: Sequence[str] | None = None) -> int:
    """Run until a signal comes; the result is the exit code."""
    try:
        settings = parse(Settings, sys.argv[1:] if argv is None else argv)
        logs.configure(log_settings(settings))
    except HelpRequested as help_text:
        sys.stdout.write(f"{help_text}\n")
        return 0
    except (UsageError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return _run_process(settings)


def _run_process(settings: Settings) -> int:
    try:
        asyncio.run(_until_signal(settings, load(settings.kubeconfig)))
    except* (LeadershipLostError, ConfigError, OSError, ValueError) as group:
        for error in _leaves(group):
            log.error("cannot run", error=str(error), cause=type(error).__name__)  # noqa: TRY400 - foreseen
        return_code = 1
    else:
        return_code = 0
    return return_code


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors inside nested groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def log_settings(settings: Settings) -> logs.LogSettings:
    """The zap flags, with their defaults (spec: control-plane 15.1)."""
    return logs.LogSettings(
        level=settings.zap_log_level,
        encoder=settings.zap_encoder,
        development=settings.zap_devel,
        stacktrace_level=settings.zap_stacktrace_level,
        time_encoding=settings.zap_time_encoding or "rfc3339",
    )


def options(settings: Settings) -> Options:
    """What the kinds may know of the flags."""
    suffix = "_workers"
    names = [name for name in Settings.__struct_fields__ if name.endswith(suffix)]
    return Options(
        workers={name.removesuffix(suffix): getattr(settings, name) for name in names},
        propagated_node_conditions=settings.propagated_node_conditions,
        environment=dict(os.environ),
    )


async def _until_signal(settings: Settings, config: ClusterConfig) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def ask_to_stop(name: str) -> None:
        if stop.is_set():  # asked twice: do not wait for anything
            os._exit(1)
        log.info("stopping", signal=name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask_to_stop, number.name)
    await run(settings, config, stop)


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
        for where, handlers in _servers(settings):
            await stack.enter_async_context(serving(where, handlers))
        tasks = await stack.enter_async_context(Tasks())
        caches, events = Caches(client, settings.namespaces), Events(client, identity)
        runtime = Runtime(client, caches, events, Clusters(tasks), options(settings))
        for register in KINDS:
            register(runtime)
        workers = Workers(runtime.controllers, stop)
        tasks.spawn("caches", caches.run())
        tasks.spawn("events", events.run())
        life = tasks.spawn("life", _live(settings, client, identity, caches, workers))
        await asyncio.wait({life, tasks.spawn("stop", stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
        if not workers.begun:
            life.cancel()
        await asyncio.wait({life})
        await events.flush()


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


def _servers(settings: Settings) -> Iterator[tuple[Address | None, Mapping[str, Handler]]]:
    yield address(settings.health_addr), PROBES
    yield address(settings.metrics_addr), {"/metrics": metrics()}
    if settings.profile:
        yield address(settings.profile_addr), PROFILES


if __name__ == "__main__":
    sys.exit(main())
