"""containerd: one for each node, and one that fills the store of images all nodes begin from."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import baseimages, files, namespaces
from lab.daemons import Daemon
from lab.errors import LabError
from lab.processes import run, wait_for
from lab.topology import Node

# Where Debian's containernetworking-plugins puts them.
_CNI_PLUGINS = "/usr/lib/cni"
NODE_SOCKET = "/run/containerd/containerd.sock"
_START_SECONDS = 60.0


@dataclass(frozen=True)
class Containerd:
    """A containerd: the namespaces it is in (a command prefix), its configuration file and its socket."""

    name: str
    group: str
    prefix: Sequence[str]
    config: Path
    socket: str

    def ensure(self) -> None:
        """Start it, unless it runs, and wait until it answers.

        Raises:
            LabError: it does not; the text has the end of its log.
        """
        daemon = Daemon(self.name, ["containerd", "--config", str(self.config)], self.group, self.prefix)
        daemon.ensure()
        wait_for(self.name, self._answers, _START_SECONDS, daemon.ended)

    def client(self, *arguments: str) -> list[str]:
        """Return a command line of its own client, for the images and containers of Kubernetes."""
        return [*self.prefix, "ctr", "--address", self.socket, "--namespace", "k8s.io", *arguments]

    def images(self) -> set[tuple[str, str]]:
        """Return name and identity of each image that Kubernetes sees."""
        return parse_listing(run(*self.client("images", "list")))

    def import_archive(self, archive: Path) -> None:
        """Import and unpack an archive.

        Raises:
            LabError: containerd refuses it.
        """
        # By standard input: a node has another /run and /var/lib than the host.
        with archive.open("rb") as stream:
            command = self.client("images", "import", "-")
            done = subprocess.run(command, stdin=stream, capture_output=True, check=False)
        if done.returncode:
            raise LabError(f"{self.name} cannot import {archive}: {done.stderr.decode().strip()}")

    def _answers(self) -> bool:
        return subprocess.run(self.client("version"), capture_output=True, check=False).returncode == 0


def of_node(node: Node) -> Containerd:
    """Return the containerd of a node."""
    config = node.state / "containerd.toml"
    name = node.daemon("containerd")
    return Containerd(name, node.name, namespaces.enter(node), config, NODE_SOCKET)


def write_node_config(node: Node) -> None:
    """Write what the containerd of a node reads."""
    files.write(node.state / "cni" / "10-lab.conflist", json.dumps(cni_config(node), indent=2))
    files.write(node.state / "containerd.toml", containerd_config(node))


def parse_listing(text: str) -> set[tuple[str, str]]:
    """Return name and identity of each image in the output of `ctr images list`.

    Kubernetes' part of containerd keeps each image twice, by name and by identity, both with one digest.
    """
    rows = [(line.split()[0], line.split()[2]) for line in text.splitlines()[1:]]
    identities = {digest: name for name, digest in rows if name.startswith("sha256:")}
    return {(name, identities[digest]) for name, digest in rows if digest in identities}


def containerd_config(node: Node) -> str:
    """Return the configuration of containerd; its root and state folders are the node's own by default."""
    return f"""\
version = 2
# Lowering the OOM score needs a capability that root in a container often lacks.
oom_score = 0
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
address = "{NODE_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{baseimages.PAUSE}"
# Without it every sandbox fails with "can't get final child's PID from pipe: EOF" where the capability lacks.
restrict_oom_score_adj = true
enable_unprivileged_ports = true
enable_unprivileged_icmp = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{_CNI_PLUGINS}"
conf_dir = "{node.state}/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""


def cni_config(node: Node) -> dict[str, Any]:
    """Return the pod network: routed point to point, so that Service traffic needs no bridge filtering."""
    addresses = {"type": "host-local", "ranges": [[{"subnet": node.pod_range}]]}
    routes = {"routes": [{"dst": "0.0.0.0/0"}]}
    plugins = [
        {"type": "ptp", "ipMasq": False, "ipam": addresses | routes},
        {"type": "portmap", "capabilities": {"portMappings": True}, "snat": False},
    ]
    return {"cniVersion": "1.0.0", "name": "lab", "plugins": plugins}
