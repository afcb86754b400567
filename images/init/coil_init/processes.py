"""Processes and signals: starting a program, telling it something, and what is known about it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from .programs import Program

FORWARDED = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
WAIT_S = 20.0
"""How long a daemon's start waits for its configuration server; well below the startup probe's minute."""


def log(text: str) -> None:
    """Write one line to standard error."""
    sys.stderr.write(f"coil-init: {text}\n")
    sys.stderr.flush()


def exit_code(status: int) -> int:
    """Exit code of a wait status, as a shell gives it: 128 + signal for a killed process."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def signal_pipe() -> int:
    """Let signals arrive as bytes in a pipe and return its reading end."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing)
    for number in (*STOPPING, signal.SIGCHLD, *FORWARDED):
        signal.signal(number, lambda _number, _frame: None)
    return reading


def spawn(program: Program, environ: Mapping[str, str]) -> int:
    """Start a program in a session of its own and return its process id.

    What keeps it from starting is logged by the new process, which then ends with 127.
    """
    pid = os.fork()
    if pid:
        return pid
    argv = [word.text for word in program.words]
    try:
        signal.set_wakeup_fd(-1)
        # Python ignores the first two; a daemon must find them as any program does.
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, *FORWARDED):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, lambda _number, _frame: os._exit(0))
        os.setsid()
        if program.wait_for:
            _wait_for(*program.wait_for)
        if program.before is not None:
            program.before()
        if program.owner is not None:
            os.setgroups([])
            os.setgid(program.owner)
            os.setuid(program.owner)
        os.execvpe(argv[0], argv, environ)  # noqa: S606 - no shell on purpose
    except BaseException as error:  # noqa: BLE001 - the child must never run on as a second init
        log(f"cannot start {argv[0]}: {error}")
    os._exit(127)


def kill(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process; 0 means there is none, and one that has just ended is no error."""
    if pid > 0:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def may_be_daemon(pid: int) -> bool:
    """Tell whether a process is alive and neither this one nor one above it."""
    if not Path(f"/proc/{pid}").exists():
        return False
    above = os.getpid()
    while above > 0:
        if above == pid:
            return False
        above = _parent(above)
    return True


def _parent(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def _wait_for(host: str, port: int) -> None:
    """Wait until something accepts connections at an address, for WAIT_S at most."""
    began = time.monotonic()
    told = False
    while time.monotonic() - began < WAIT_S:
        try:
            # bytes, because text would need the IDNA codec, which a minimal Python lacks.
            for family, kind, protocol, _, address in socket.getaddrinfo(
                host.encode(), port, type=socket.SOCK_STREAM
            ):
                with socket.socket(family, kind, protocol) as probe:
                    probe.settimeout(2.0)
                    probe.connect(address)
                    return
        except OSError as error:
            if not told:
                log(f"waiting for {host}:{port} ({error})")
                told = True
            time.sleep(0.2)
