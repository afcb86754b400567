"""What every process of coil does around its work: command line, logging, signals, exit codes.

    if __name__ == "__main__":
        sys.exit(main("webhook", WebhookSettings, run))

Exit code 0 after a signal, 1 when the process could not start or go on, 2 for a bad command line
(spec: control-plane 15.1).
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

import uvloop
from lightkube.core.exceptions import ConfigError

from coil.kube.config import ClusterConfig, load
from coil.kube.lease import LeadershipLostError
from coil.service.flags import HelpRequested, UsageError, parse
from coil.service.settings import ProcessSettings
from coil.support import log as logs

S = TypeVar("S", bound=ProcessSettings)

Run = Callable[[S, ClusterConfig, asyncio.Event], Awaitable[None]]
"""The work of a process: ends when the event is set."""


def main(name: str, kind: type[S], run: Run[S], argv: Sequence[str] | None = None) -> int:
    """Read the flags of `kind`, run until a signal comes; the result is the exit code."""
    try:
        settings = parse(kind, sys.argv[1:] if argv is None else argv)
        logs.configure(log_settings(settings))
    except HelpRequested as help_text:
        sys.stdout.write(f"{help_text}\n")
        return 0
    except (UsageError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    log = logs.get_logger(name)
    try:
        uvloop.run(_until_signal(name, run, settings, load(settings.kubeconfig)))
    except* (LeadershipLostError, ConfigError, OSError, ValueError) as group:
        for error in _leaves(group):
            log.error("cannot run", error=str(error), cause=type(error).__name__)  # noqa: TRY400 - foreseen
        return_code = 1
    else:
        return_code = 0
    return return_code


def log_settings(settings: ProcessSettings) -> logs.LogSettings:
    """The zap flags, with their defaults (spec: control-plane 15.1)."""
    return logs.LogSettings(
        level=settings.zap_log_level,
        encoder=settings.zap_encoder,
        development=settings.zap_devel,
        stacktrace_level=settings.zap_stacktrace_level,
        time_encoding=settings.zap_time_encoding or "rfc3339",
    )


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors inside nested groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


async def _until_signal(name: str, run: Run[S], settings: S, config: ClusterConfig) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def ask_to_stop(signal_name: str) -> None:
        if stop.is_set():  # asked twice: do not wait for anything
            os._exit(1)
        logs.get_logger(name).info("stopping", signal=signal_name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask_to_stop, number.name)
    await run(settings, config, stop)
