"""The namespaces that make a node: network, mounts and host name, held by one process that only sleeps.

Inside, /run is empty and /var/lib and /var/log are the node's own, so every program finds its usual paths and
no two nodes share one. The host sees none of these mounts. `nsenter` enters them: `ip netns exec` would mount
/sys anew and lose the cgroup mounts.
"""

from pathlib import Path

from lab import cgroups, daemons, paths
from lab.daemons import Daemon
from lab.errors import LabError
from lab.processes import wait_for
from lab.topology import Node

# The folder of volumes is the same on all nodes, as a network file system would be.
VOLUMES = paths.DATA / "volumes"
_SETUP_SECONDS = 20.0

# $1 the node's name, $2 its disk, $3 its state folder, $4 the volumes.
_SETUP = """
set -e
hostname "$1"
mount --make-rshared /
mkdir -p "$2/lib/${4#/var/lib/}" "$2/log" "$2/run"
mount -t tmpfs -o mode=755 tmpfs "$2/run"
mkdir -p "$2/run/lock" "$2$3"
mount --bind "$3" "$2$3"
mount --bind "$4" "$2/lib/${4#/var/lib/}"
mount --bind "$2/log" /var/log
mount --rbind "$2/run" /run
mount --rbind "$2/lib" /var/lib
echo "$$" > "$3/holder"
exec sleep infinity
"""


def exist(node: Node) -> bool:
    """Tell whether a node's namespaces can be entered."""
    return daemons.process(_holder(node)) is not None


def create(node: Node) -> None:
    """Make a node's namespaces anew.

    Whatever still runs in namespaces of a holder that is gone is ended: it could not be entered any more.

    Raises:
        LabError: the set-up failed.
    """
    cgroups.kill_all(node.name)
    for folder in (node.data, node.state, VOLUMES):
        folder.mkdir(parents=True, exist_ok=True)
    ready = node.state / "holder"
    ready.unlink(missing_ok=True)
    arguments = [node.name, str(node.data), str(node.state), str(VOLUMES)]
    setup = ["sh", "-c", _SETUP, "sh", *arguments]
    daemon = Daemon(_holder(node), setup, node.name, ["unshare", "--net", "--mount", "--uts", "--"])
    daemon.ensure()
    wait_for(daemon.name, ready.exists, _SETUP_SECONDS, daemon.ended)


def network(node: Node) -> Path:
    """Return the file that stands for a node's network namespace."""
    return Path(f"/proc/{_pid(node)}/ns/net")


def enter(node: Node) -> list[str]:
    """Return the command prefix that runs a program on a node."""
    return ["nsenter", f"--target={_pid(node)}", "--net", "--mount", "--uts", "--"]


def enter_network(node: Node) -> list[str]:
    """Return the command prefix that runs a program with the host's files and a node's network."""
    return ["nsenter", f"--target={_pid(node)}", "--net", "--"]


def _holder(node: Node) -> str:
    return node.daemon("namespaces")


def _pid(node: Node) -> int:
    process = daemons.process(_holder(node))
    if process is None:
        raise LabError(f"{node.name} does not run: `python -m lab up` starts it")
    return process.pid
