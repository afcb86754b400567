"""The main loop: start programs, follow the daemon's main process, stop in order, reap everything."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .notify import NotifySocket
from .processes import FORWARDED, STOPPING, exit_code, kill, log, may_be_daemon, signal_pipe, spawn
from .programs import Program

HELPER_STOP_S = 5.0
"""How long a helper may take to end once the daemon has ended."""
_STEADY_S = 60.0
_LONGEST_DELAY_S = 60.0


def restart_delay(failures: int) -> float:
    """Seconds to wait before a helper's start number `failures` + 1: 1, 2, 4 ... 60."""
    return min(_LONGEST_DELAY_S, 2.0 ** min(failures - 1, 10))


@dataclass
class _Running:
    """A program and its main process."""

    program: Program
    pid: int = 0
    started: float = 0.0
    failures: int = 0
    restart_at: float | None = None


class Supervisor:
    """Runs `programs` until the essential one ends or the container is told to stop.

    The first program is the daemon: it is stopped first, gets the forwarded signals, and has
    `stop_timeout` seconds to end. The others are stopped after it.
    """

    def __init__(self, programs: Sequence[Program], stop_timeout: float) -> None:
        self._all = [_Running(program) for program in programs]
        self._stop_timeout = stop_timeout
        self._code: int | None = None
        self._stopping: list[_Running] | None = None
        self._kill_at: float | None = None
        self._selector = selectors.DefaultSelector()
        owner = next((p.owner for p in programs if p.notify and p.owner is not None), os.geteuid())
        self._notify = NotifySocket(owner, owner)
        self._selector.register(self._notify.socket, selectors.EVENT_READ, self._notified)
        self._signals = signal_pipe()
        self._selector.register(self._signals, selectors.EVENT_READ, self._signalled)

    def daemon(self) -> int:
        """Return the process id of the daemon's main process; 0 when there is none."""
        return self._all[0].pid

    def run(self) -> int:
        """Start everything, wait, and return the exit code of the essential program."""
        for running in self._all:
            self._start(running)
        while self._stopping is None or self._stopping:
            for key, _ in self._selector.select(self._wait_s()):
                handler: Callable[[], None] = key.data
                handler()
            self._reap()
            self._tick()
        self._notify.close()
        return self._code or 0

    # --- starting -----------------------------------------------------------------------------------

    def _start(self, running: _Running) -> None:
        program = running.program
        who = "" if program.owner is None else f" as {program.owner}"
        log(f"starting {program.name}{who}: {' '.join(_quote(word.shown) for word in program.words)}")
        environ = dict(os.environ)
        if program.notify:
            environ["NOTIFY_SOCKET"] = self._notify.path
        running.pid = spawn(program, environ)
        running.started, running.restart_at = time.monotonic(), None

    # --- what happens -------------------------------------------------------------------------------

    def _notified(self) -> None:
        for sender, pid in self._notify.messages():
            running = next((r for r in self._all if r.program.notify), None)
            if running is None or pid is None or pid in (running.pid, 0):
                continue
            if sender not in (pid, running.pid) or not may_be_daemon(pid):
                log(f"ignored: process {sender} named {pid} as main process")
                continue
            log(f"{running.program.name}: main process is now {pid}")
            running.pid = pid
            self._watch_stranger(running)
            if self._stopping and self._stopping[0] is running:
                kill(pid, signal.SIGTERM)

    def _watch_stranger(self, running: _Running) -> None:
        """Watch a main process that is not our child.

        Process 1 inherits orphans; in a pod with a shared process namespace another process does, and
        the end is seen through a descriptor, without the exit code.
        """
        if os.getpid() == 1:
            return
        pid = running.pid
        descriptor = os.pidfd_open(pid)

        def ended() -> None:
            self._selector.unregister(descriptor)
            os.close(descriptor)
            if running.pid == pid:
                self._ended(running, 0 if self._stopping is not None else 1)

        self._selector.register(descriptor, selectors.EVENT_READ, ended)

    def _signalled(self) -> None:
        for number in os.read(self._signals, 64):
            if number in FORWARDED:
                kill(self._all[0].pid, signal.Signals(number))
            elif number in STOPPING:
                self._asked_to_stop(signal.Signals(number))

    def _asked_to_stop(self, number: signal.Signals) -> None:
        if self._stopping is None:
            log(f"{number.name}: stopping, {self._stop_timeout:g} s at most")
            self._stop_all()
        else:
            log(f"{number.name} again: killing")
            self._kill_at = time.monotonic()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            # A daemon that has just replaced itself says so before the old process ends.
            self._notified()
            for running in self._all:
                if running.pid == pid:
                    self._ended(running, exit_code(status))

    def _ended(self, running: _Running, code: int) -> None:
        program, running.pid = running.program, 0
        log(f"{program.name} ended with {code}")
        if program.essential and self._code is None:
            self._code = code
        if self._stopping is not None:
            self._stop_next()
        elif program.essential:
            self._stop_all()
        else:
            steady = time.monotonic() - running.started > _STEADY_S
            running.failures = 1 if steady else running.failures + 1
            delay = restart_delay(running.failures)
            running.restart_at = time.monotonic() + delay
            log(f"{program.name} starts again in {delay:g} s")

    # --- stopping -----------------------------------------------------------------------------------

    def _stop_all(self) -> None:
        self._stopping = list(self._all)
        self._kill_at = None
        self._stop_next()

    def _stop_next(self) -> None:
        """Tell the next program to end, once the one before it has ended."""
        assert self._stopping is not None  # noqa: S101 - for the type checker
        before = len(self._stopping)
        while self._stopping and self._stopping[0].pid == 0:
            self._stopping.pop(0)
        if not self._stopping or (self._kill_at is not None and before == len(self._stopping)):
            return
        first = self._stopping[0] is self._all[0]
        self._kill_at = time.monotonic() + (self._stop_timeout if first else HELPER_STOP_S)
        kill(self._stopping[0].pid, signal.SIGTERM)

    def _tick(self) -> None:
        now = time.monotonic()
        if self._stopping is None:
            for running in self._all:
                if running.restart_at is not None and running.restart_at <= now:
                    self._start(running)
        elif self._stopping and self._kill_at is not None and self._kill_at <= now:
            log(f"{self._stopping[0].program.name} does not end: killing it")
            kill(self._stopping[0].pid, signal.SIGKILL)
            self._kill_at = now + HELPER_STOP_S

    def _wait_s(self) -> float | None:
        """Seconds until the next thing to do without an event; None for ever."""
        if self._stopping is None:
            times = [r.restart_at for r in self._all if r.restart_at is not None]
        else:
            times = [] if self._kill_at is None else [self._kill_at]
        return max(0.0, min(times) - time.monotonic()) if times else None


def _quote(word: str) -> str:
    return word if word and not set(word) & set(" \t\n'\"\\") else "'" + word.replace("'", "'\\''") + "'"
