"""Start, watch and end long-running programs, each known by its process id and start time, never by name."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lab.errors import LabError

_TAIL_LINES = 15
_OUTPUT_CHARACTERS = 2000


@dataclass(frozen=True)
class ProcessId:
    """A process that cannot be mistaken for a later one that got the same number."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Return the identity of a running process, or None when there is none of that number."""
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        # The command name in parentheses may hold blanks: count the fields behind it.
        fields = text.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else cls(pid, fields[19])

    @property
    def alive(self) -> bool:
        """True while that very process runs."""
        return ProcessId.of(self.pid) == self

    def end(self, grace_seconds: float) -> None:
        """Ask the process to terminate, kill it after the grace period, and return when it is gone."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if self.alive:
                _end(handle, grace_seconds)
        finally:
            os.close(handle)


def _end(handle: int, grace_seconds: float) -> None:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    for number, wait in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, 10.0)):
        if wait <= 0:
            continue
        try:
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return
        if poll.poll(wait * 1000):
            return


def start(argv: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, its output appended to a log file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )


def run(*argv: str, stdin: str | None = None) -> str:
    """Run a short command and return what it printed.

    Raises:
        LabError: it failed; the text has its command line and output.
    """
    result = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
    if result.returncode:
        output = (result.stderr or result.stdout).strip()[-_OUTPUT_CHARACTERS:]
        raise LabError(f"`{' '.join(argv)}` failed with exit code {result.returncode}: {output}")
    return result.stdout


def wait_for(
    what: str, ready: Callable[[], bool], seconds: float, alive: Callable[[], str | None] = lambda: None
) -> None:
    """Return when `ready()` is true; `alive()` may end the wait early with a reason.

    Raises:
        LabError: the time is over or `alive` gave a reason.
    """
    deadline = time.monotonic() + seconds
    while not ready():
        reason = alive()
        if reason is None and time.monotonic() > deadline:
            reason = f"not within {seconds:.0f} s"
        if reason is not None:
            raise LabError(f"{what}: {reason}")
        time.sleep(0.05)


def tail(log: Path) -> str:
    """Return the last lines of a log file, for an error message."""
    if not log.exists():
        return f"({log} does not exist)"
    return "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
