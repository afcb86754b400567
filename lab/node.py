"""One node: its namespaces, its kubelet and kube-proxy, and the files they read."""

from collections.abc import Sequence
from typing import Any

import yaml

from lab import binaries, daemons, files, namespaces, network
from lab.certificates import Subject
from lab.containerd import NODE_SOCKET
from lab.controlplane import ControlPlane
from lab.daemons import Daemon
from lab.processes import run
from lab.topology import CLUSTER_DOMAIN, DNS_ADDRESS, POD_RANGE, Node

CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"


def create(node: Node, nodes: Sequence[Node]) -> None:
    """Make a node's namespaces, its cable, addresses and routes, where they are not there."""
    if not namespaces.exist(node):
        # The kernel removes the cable of a node that lost its namespaces, but in its own time.
        network.disconnect(node)
        namespaces.create(node)
    network.connect(node, namespaces.network(node))
    network.batch(*network.node_commands(node, nodes), prefix=namespaces.enter_network(node))
    # Written from inside: each network namespace has switches of its own.
    run(*namespaces.enter_network(node), "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")


def start_agents(node: Node, plane: ControlPlane) -> None:
    """Start kubelet and kube-proxy with credentials of the node's own; the runtime must be there."""
    _write_credentials(node, plane)
    files.write(node.state / "resolv.conf", "")
    _start(node, "kubelet", _kubelet(node), kubelet_config(node, plane))
    _start(node, "kube-proxy", _proxy(node), proxy_config(node))


def _start(node: Node, program: str, argv: Sequence[str], config: dict[str, Any]) -> None:
    name = node.daemon(program)
    if files.write(node.state / f"{program}.yaml", yaml.safe_dump(config)):
        # kube-proxy ends by itself when its file changes, a little later; the kubelet reads it at start only.
        daemons.stop(name)
    Daemon(name, argv, group=node.name, prefix=namespaces.enter(node)).ensure()


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
        "containerRuntimeEndpoint": f"unix://{NODE_SOCKET}",
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
        "nodePortAddresses": ["primary"],
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
