"""Find what the lab has on the machine: nothing, when it is down."""

from pathlib import Path

from lab import cgroups, network, paths
from lab.processes import run
from lab.topology import BRIDGE

# What rules for the lab's pods, Services and nodes would name.
_ADDRESSES = ("10.244.", "10.96.", "172.30.0.", BRIDGE)


def leftovers() -> list[str]:
    """Return a line for each process, mount, link, route, rule, cgroup and folder of the lab."""
    return [
        *(f"process {pid}: {_command(pid)}" for pid in cgroups.processes()),
        *(f"mount {point}" for point in _mounts()),
        *(f"network link {name}" for name in sorted(network.links())),
        *(f"route {line}" for line in _naming_the_lab(run("ip", "route"))),
        *(f"packet filter rule {line}" for line in _naming_the_lab(run("iptables-save"))),
        *(f"cgroup {folder}" for folder in cgroups.folders()),
        *(f"folder {folder}" for folder in (paths.STATE, paths.DATA) if folder.exists()),
    ]


def _mounts() -> list[str]:
    """Return what is mounted below the lab's folders; a node's own mounts are not seen by the host."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in points if f"{point}/".startswith((f"{paths.STATE}/", f"{paths.DATA}/"))]


def _naming_the_lab(text: str) -> list[str]:
    return [line for line in text.splitlines() if any(address in line for address in _ADDRESSES)]


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except FileNotFoundError:
        return "(ended)"
    return words[:100]
