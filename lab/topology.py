"""The lab's machines and addresses: what is where, without doing anything.

Every node is a set of namespaces on this host, joined to one bridge. The first carries the control plane and
is tainted as kubeadm does, so that workers' pods end on the others.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import paths
from lab.controlplane import ControlPlane

BRIDGE = "coil-lab"
HOST_ADDRESS = "172.30.0.1"
PREFIX_LENGTH = 24
POD_RANGE = "10.244.0.0/16"
SERVICE_RANGE = "10.96.0.0/16"
DNS_ADDRESS = "10.96.0.10"
CLUSTER_DOMAIN = "cluster.local"
DEFAULT_NODES = 3
_FIRST_NODE = 10


@dataclass(frozen=True)
class Node:
    """One machine of the lab."""

    name: str
    index: int

    @property
    def control(self) -> bool:
        """True for the node that carries the control plane."""
        return self.index == 0

    @property
    def address(self) -> str:
        """Its address on the bridge."""
        return f"172.30.0.{_FIRST_NODE + self.index}"

    @property
    def pod_range(self) -> str:
        """The addresses of its pods."""
        return f"10.244.{self.index}.0/24"

    @property
    def link(self) -> str:
        """The host's end of its network cable."""
        return f"{BRIDGE}-{self.index}"

    @property
    def cgroup(self) -> str:
        """The cgroup below which its pods are, as the kubelet names it."""
        return f"/{BRIDGE}/{self.name}"

    @property
    def state(self) -> Path:
        """The folder of its configuration and keys."""
        return paths.STATE / "nodes" / self.name

    @property
    def data(self) -> Path:
        """The folder of its disk."""
        return paths.DATA / "nodes" / self.name

    def daemon(self, program: str) -> str:
        """Return the name of one of its daemons."""
        return f"{self.name}-{program}"


def nodes(count: int) -> list[Node]:
    """Return the nodes of a lab of `count` machines."""
    return [Node("control" if index == 0 else f"worker-{index}", index) for index in range(count)]


def control_plane(control: Node) -> ControlPlane:
    """Return the control plane that runs on a node."""
    return ControlPlane(
        directory=paths.STATE / "control-plane",
        data=paths.DATA / "etcd",
        address=control.address,
        service_range=SERVICE_RANGE,
        pod_range=POD_RANGE,
    )


@dataclass(frozen=True)
class Record:
    """What a running lab is made of, and in which life of the machine it was started."""

    nodes: int
    boot: str

    @classmethod
    def read(cls) -> "Record | None":
        """Return the record of the lab that was started and not taken down."""
        path = paths.STATE / "lab.json"
        return cls(**json.loads(path.read_text())) if path.exists() else None

    def write(self) -> None:
        """Remember."""
        paths.STATE.mkdir(parents=True, exist_ok=True)
        (paths.STATE / "lab.json").write_text(json.dumps({"nodes": self.nodes, "boot": self.boot}))


def boot_id() -> str:
    """Return what names this life of the machine: after a reboot no pid and no namespace is valid."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def recorded_nodes() -> Sequence[Node]:
    """Return the nodes of the lab that is there; none when there is none."""
    record = Record.read()
    return nodes(record.nodes) if record else []
