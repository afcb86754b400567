"""The lab's own cgroup folders: one subtree in each hierarchy, for pods and to know the lab's processes by.

Works with the v1 hierarchies side by side and with the single v2 one. Other folders are never touched.
"""

import errno
import itertools
import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.errors import LabError

_ROOT = "coil-lab"
_DAEMONS = "daemons"


def parse_hierarchies(mounts: str) -> dict[str, Path]:
    """Return mount points by what they control, from the text of /proc/mounts; `unified` is cgroup v2."""
    found: dict[str, Path] = {}
    for line in mounts.splitlines():
        _, mount, kind, options = line.split()[:4]
        if kind == "cgroup2":
            found["unified"] = Path(mount)
        elif kind == "cgroup":
            found[options.split(",")[-1].removeprefix("name=")] = Path(mount)
    return found


def _hierarchies() -> dict[str, Path]:
    return parse_hierarchies(Path("/proc/self/mounts").read_text())


def _tracker() -> Path:
    """Return the folder below which every process of the lab is, daemons and containers."""
    hierarchies = _hierarchies()
    for name in ("pids", "unified"):
        if name in hierarchies:
            return hierarchies[name] / _ROOT
    raise LabError("neither a `pids` cgroup hierarchy nor cgroup v2 is mounted: Kubernetes needs one")


def create(node_names: Sequence[str]) -> None:
    """Make the folder of each node's pods in every hierarchy; the kubelet wants them to be there."""
    for kind, mount in _hierarchies().items():
        root = mount / _ROOT
        for folder in (root, *(root / name for name in node_names)):
            folder.mkdir(exist_ok=True)
            if kind == "cpuset":
                _inherit_cpuset(folder)
            if kind == "unified":
                _delegate(folder)


def _inherit_cpuset(folder: Path) -> None:
    for name in ("cpuset.cpus", "cpuset.mems"):
        (folder / name).write_text((folder.parent / name).read_text())


def _delegate(folder: Path) -> None:
    for name in (folder / "cgroup.controllers").read_text().split():
        (folder / "cgroup.subtree_control").write_text(f"+{name}")


def daemon_procs(group: str) -> Path:
    """Return the file that a process of a group of daemons writes its id into, making the folder."""
    folder = _tracker() / _DAEMONS / group
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "cgroup.procs"


def processes(node: str | None = None) -> list[int]:
    """Return every process of the lab, or of one node: daemons, container shims and containers."""
    root = _tracker()
    roots = [root] if node is None else [root / _DAEMONS / node, root / node]
    found: list[int] = []
    for folder in itertools.chain.from_iterable(map(_below, roots)):
        try:
            found += [int(line) for line in (folder / "cgroup.procs").read_text().split()]
        except (FileNotFoundError, OSError):
            continue  # the folder went meanwhile, and with it its processes
    return found


def kill_all(node: str | None = None, seconds: float = 20.0) -> None:
    """Kill what `processes` lists until nothing is left.

    Raises:
        LabError: something survives.
    """
    deadline = time.monotonic() + seconds
    while pids := processes(node):
        if time.monotonic() > deadline:
            raise LabError(f"processes {pids} of the lab do not end; look at /proc/PID/stack")
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)


def remove(seconds: float = 10.0) -> None:
    """Remove the lab's folders from every hierarchy; they must hold no process any more."""
    deadline = time.monotonic() + seconds
    for mount in _hierarchies().values():
        for folder in _below(mount / _ROOT):
            while not _removed(folder):
                if time.monotonic() > deadline:
                    raise LabError(
                        f"cgroup {folder} is busy: {(folder / 'cgroup.procs').read_text().split()}"
                    )
                time.sleep(0.05)


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        # A dead process leaves its cgroup a moment after it left the process table.
        if error.errno == errno.EBUSY:
            return False
        raise
    return True


def folders() -> list[Path]:
    """Return the lab's folders that exist."""
    return [root for mount in _hierarchies().values() if (root := mount / _ROOT).exists()]


def _below(root: Path) -> Iterator[Path]:
    """Yield every folder below a root and the root itself, deepest first."""
    for folder, _, _ in os.walk(root, topdown=False):
        yield Path(folder)
