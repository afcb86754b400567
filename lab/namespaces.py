"""The namespaces that make a node: network, mounts and host name, kept alive by files below the state folder.

Inside, /run is empty and /var/lib and /var/log are the node's own, so every program finds its usual paths and
no two nodes share one. `nsenter` and `unshare` enter it: `ip netns exec` would mount /sys anew and lose the
cgroup mounts.
"""

from pathlib import Path

from lab import paths
from lab.processes import run
from lab.topology import Node

_PINS = paths.STATE / "ns"
_KINDS = ("net", "mount", "uts")
# The folder of volumes is the same on all nodes, as a network file system would be.
VOLUMES = paths.DATA / "volumes"

# $1 the node's name, $2 its disk, $3 its state folder, $4 the pins, $5 the volumes.
_SETUP = """
set -e
hostname "$1"
# A copy of the pins would keep the other nodes' namespaces alive.
umount --lazy --recursive "$4"
mount --make-rshared /
mkdir -p "$2/lib" "$2/log" "$2/run"
mount -t tmpfs -o mode=755 tmpfs "$2/run"
mkdir -p "$2/run/lock" "$2$3"
mount --bind "$3" "$2$3"
mkdir -p "$2/lib/${5#/var/lib/}"
mount --bind "$5" "$2/lib/${5#/var/lib/}"
mount --bind "$2/log" /var/log
mount --rbind "$2/run" /run
mount --rbind "$2/lib" /var/lib
"""


def create(node: Node) -> bool:
    """Make a node's namespaces and pin them; False when they are there already.

    Raises:
        LabError: the set-up failed; nothing is left pinned.
    """
    if all(_mounted(pin) for pin in _pins(node)):
        return False
    release(node)
    _share_nothing(_PINS)
    for folder in (node.data, node.state, VOLUMES):
        folder.mkdir(parents=True, exist_ok=True)
    for pin in _pins(node):
        pin.touch()
    options = [f"--{kind}={pin}" for kind, pin in zip(_KINDS, _pins(node), strict=True)]
    arguments = [node.name, node.data, node.state, _PINS, VOLUMES]
    try:
        run("unshare", *options, "sh", "-c", _SETUP, "sh", *map(str, arguments))
    except BaseException:
        release(node)
        raise
    return True


def network(node: Node) -> Path:
    """Return the file that stands for a node's network namespace."""
    return _pins(node)[0]


def enter(node: Node) -> list[str]:
    """Return the command prefix that runs a program on a node."""
    options = [f"--{kind}={pin}" for kind, pin in zip(_KINDS, _pins(node), strict=True)]
    return ["nsenter", *options, "--"]


def enter_network(node: Node) -> list[str]:
    """Return the command prefix that runs a program with the host's files and a node's network."""
    return ["nsenter", f"--net={network(node)}", "--"]


def release(node: Node) -> None:
    """Let go of a node's namespaces; the kernel removes them with their last process."""
    for pin in _pins(node):
        while _mounted(pin):
            run("umount", str(pin))
        pin.unlink(missing_ok=True)


def release_all() -> None:
    """Let go of whatever is pinned, and of the folder of pins."""
    for mount in reversed(mounts()):
        run("umount", mount)


def mounts() -> list[str]:
    """Return the lab's mount points on the host."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4] for line in lines]
    roots = (f"{paths.STATE}/", f"{paths.DATA}/")
    return [point for point in points if f"{point}/".startswith(roots)]


def _pins(node: Node) -> list[Path]:
    return [_PINS / f"{node.name}.{kind}" for kind in _KINDS]


def _mounted(path: Path) -> bool:
    return str(path) in mounts()


def _share_nothing(folder: Path) -> None:
    """Make a folder a private mount of its own: the kernel pins mount namespaces on no other."""
    folder.mkdir(parents=True, exist_ok=True)
    if not _mounted(folder):
        run("mount", "--bind", str(folder), str(folder))
        run("mount", "--make-private", str(folder))
