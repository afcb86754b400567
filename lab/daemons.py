"""The lab's daemons: they outlive the command that starts them and are found again by their pid files."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lab import cgroups, paths
from lab.errors import LabError
from lab.processes import ProcessId, start, tail

_PIDS = paths.STATE / "pids"
LOGS = paths.STATE / "logs"
_started: list[subprocess.Popen[bytes]] = []
# The first argument is the file to join a cgroup by; the rest is the program.
_JOIN = 'echo $$ > "$0"; exec "$@"'


@dataclass(frozen=True)
class Daemon:
    """A program, the namespaces it runs in (a command prefix) and the group it is accounted to."""

    name: str
    argv: Sequence[str]
    group: str
    prefix: Sequence[str] = ()

    @property
    def log(self) -> Path:
        """The file of its output."""
        return log(self.name)

    def ensure(self) -> None:
        """Start the daemon, unless it runs."""
        if process(self.name):
            return
        procs = cgroups.daemon_procs(self.group)
        child = start(["sh", "-c", _JOIN, str(procs), *self.prefix, *self.argv], self.log)
        # Python warns when it forgets a process that still runs, as these are meant to.
        _started.append(child)
        identity = ProcessId.of(child.pid)
        if identity is None:
            raise LabError(f"{self.name} ended at once:\n{tail(self.log)}")
        _PIDS.mkdir(parents=True, exist_ok=True)
        (_PIDS / f"{self.name}.json").write_text(json.dumps(asdict(identity)))

    def ended(self) -> str | None:
        """Say why the daemon is no longer there, or None while it is."""
        return None if process(self.name) else f"it ended:\n{tail(self.log)}"


def log(name: str) -> Path:
    """Return the log file of a daemon."""
    return LOGS / f"{name}.log"


def process(name: str) -> ProcessId | None:
    """Return the running process of a daemon, or None."""
    path = _PIDS / f"{name}.json"
    if not path.exists():
        return None
    identity = ProcessId(**json.loads(path.read_text()))
    return identity if identity.alive else None


def known() -> list[str]:
    """Return the names of all daemons that were started."""
    return sorted(path.stem for path in _PIDS.glob("*.json"))


def stop(name: str, grace_seconds: float = 5.0) -> None:
    """End a daemon and forget it."""
    running = process(name)
    if running:
        running.end(grace_seconds)
    (_PIDS / f"{name}.json").unlink(missing_ok=True)
