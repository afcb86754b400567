"""One node: containerd, kubelet and kube-proxy in the node's namespaces, and the files they read."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from lab import baseimages, binaries, namespaces, network
from lab.certificates import Subject
from lab.controlplane import ControlPlane
from lab.daemons import Daemon
from lab.processes import run, wait_for
from lab.topology import CLUSTER_DOMAIN, DNS_ADDRESS, POD_RANGE, Node

CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"
# Where Debian's containernetworking-plugins puts them.
_CNI_PLUGINS = "/usr/lib/cni"
_CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
_START_SECONDS = 60.0


def create(node: Node, nodes: Sequence[Node]) -> None:
    """Make a node's namespaces and cable, unless they are there."""
    if namespaces.create(node):
        network.connect(node, namespaces.network(node))
        network.batch(*network.node_commands(node, nodes), prefix=namespaces.enter_network(node))
        # Written from inside: each network namespace has switches of its own.
        forward = "echo 1 > /proc/sys/net/ipv4/ip_forward"
        run(*namespaces.enter_network(node), "sh", "-c", forward)


def start_runtime(node: Node) -> None:
    """Start containerd and wait until it answers.

    Raises:
        LabError: it does not; the text has the end of its log.
    """
    (node.state / "containerd.toml").write_text(containerd_config(node))
    _write_json(node.state / "cni" / "10-lab.conflist", cni_config(node))
    daemon = Daemon(
        node.daemon("containerd"),
        ["containerd", "--config", str(node.state / "containerd.toml")],
        group=node.name,
        prefix=namespaces.enter(node),
    )
    daemon.ensure()
    wait_for(daemon.name, lambda: _answers(node), _START_SECONDS, daemon.ended)


def start_agents(node: Node, plane: ControlPlane) -> None:
    """Start kubelet and kube-proxy with credentials of the node's own; the runtime must be there."""
    _write_credentials(node, plane)
    (node.state / "resolv.conf").write_text("")
    (node.state / "kubelet.yaml").write_text(yaml.safe_dump(kubelet_config(node, plane)))
    (node.state / "kube-proxy.yaml").write_text(yaml.safe_dump(proxy_config(node)))
    for program, argv in (("kubelet", _kubelet(node)), ("kube-proxy", _proxy(node))):
        Daemon(node.daemon(program), argv, group=node.name, prefix=namespaces.enter(node)).ensure()


def daemon_names(node: Node) -> list[str]:
    """Return the names of a node's daemons, in the order to end them in."""
    return [node.daemon(program) for program in ("kubelet", "kube-proxy", "containerd")]


def ctr(node: Node, *arguments: str) -> list[str]:
    """Return a command line of containerd's own client for the images and containers of Kubernetes."""
    return [*namespaces.enter(node), "ctr", "--namespace", "k8s.io", *arguments]


def containerd_config(node: Node) -> str:
    """Return the configuration of containerd; its root and state folders are the node's own by default."""
    return f"""\
version = 2
# Lowering the OOM score needs a capability that a machine in a sandbox lacks.
oom_score = 0
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
address = "{_CONTAINERD_SOCKET}"
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


def kubelet_config(node: Node, plane: ControlPlane) -> dict[str, Any]:
    """Return the configuration of the kubelet."""
    config: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{node.state}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{node.state}/kubelet.crt",
        "tlsPrivateKeyFile": f"{node.state}/kubelet.key",
        "containerRuntimeEndpoint": f"unix://{_CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": node.cgroup,
        "failCgroupV1": False,
        "failSwapOn": False,
        "clusterDNS": [DNS_ADDRESS],
        "clusterDomain": CLUSTER_DOMAIN,
        # Pods with the node's own resolver get an empty one: there is no name server outside.
        "resolvConf": f"{node.state}/resolv.conf",
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
        "maxPods": 250,
        # A status that follows quickly makes a node ready, or not ready, seconds earlier.
        "nodeStatusUpdateFrequency": "2s",
        # Images come from files and could not be pulled again; the disk is shared with the whole machine.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "oomScoreAdj": 0,
    }
    if node.control and plane.address == node.address:
        config["registerWithTaints"] = [{"key": CONTROL_PLANE_LABEL, "effect": "NoSchedule"}]
    return config


def proxy_config(node: Node) -> dict[str, Any]:
    """Return the configuration of kube-proxy."""
    # Connection tracking limits belong to the machine and are left alone.
    untouched = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "bindAddress": node.address,
        "hostnameOverride": node.name,
        "clusterCIDR": POD_RANGE,
        "conntrack": untouched,
        "clientConnection": {"kubeconfig": f"{node.state}/kube-proxy.conf"},
        "oomScoreAdj": 0,
    }


def _kubelet(node: Node) -> list[str]:
    return [
        str(binaries.binary("kubelet")),
        f"--config={node.state}/kubelet.yaml",
        f"--kubeconfig={node.state}/kubelet.conf",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
    ]


def _proxy(node: Node) -> list[str]:
    return [str(binaries.binary("kube-proxy")), f"--config={node.state}/kube-proxy.yaml"]


def _write_credentials(node: Node, plane: ControlPlane) -> None:
    if (node.state / "kube-proxy.conf").exists():
        return
    user = f"system:node:{node.name}"
    authority = plane.authority()
    (node.state / "ca.crt").write_bytes(authority.credentials.certificate)
    authority.issue(Subject(user, hosts=[node.name, node.address])).write(node.state, "kubelet")
    plane.write_kubeconfig(node.state / "kubelet.conf", Subject(user, ["system:nodes"]))
    plane.write_kubeconfig(node.state / "kube-proxy.conf", Subject("system:kube-proxy"))


def _answers(node: Node) -> bool:
    done = subprocess.run([*ctr(node, "version")], capture_output=True, check=False)
    return done.returncode == 0


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2))
