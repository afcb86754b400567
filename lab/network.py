"""The lab's network: one bridge on the host, one cable to each node, routes to every pod range.

Nothing is masqueraded between pods. The host itself gets an address on the bridge and routes, and no packet
filter rule: Service addresses are reached through the control node, whose kube-proxy translates them.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from lab.processes import run
from lab.topology import BRIDGE, HOST_ADDRESS, PREFIX_LENGTH, SERVICE_RANGE, Node


def links() -> set[str]:
    """Return the names of the lab's links on the host."""
    found: set[str] = {link["ifname"] for link in json.loads(run("ip", "-json", "link"))}
    return {name for name in found if name == BRIDGE or name.startswith(f"{BRIDGE}-")}


def create_bridge() -> None:
    """Make the bridge, unless it is there."""
    if BRIDGE in links():
        return
    batch(
        f"link add {BRIDGE} type bridge forward_delay 0",
        f"address add {HOST_ADDRESS}/{PREFIX_LENGTH} dev {BRIDGE}",
        f"link set {BRIDGE} up",
    )


def connect(node: Node, namespace: Path) -> None:
    """Lay the cable from a node's network namespace to the bridge, unless it is there."""
    if node.link in links():
        return
    batch(
        f"link add {node.link} type veth peer name eth0 netns {namespace}",
        f"link set {node.link} master {BRIDGE}",
        f"link set {node.link} up",
    )


def disconnect(node: Node) -> None:
    """Remove a node's cable, if it is there."""
    if node.link in links():
        run("ip", "link", "delete", node.link)


def cut(node: Node) -> None:
    """Let a node lose its network until `mend`; whatever runs on it runs on."""
    run("ip", "link", "set", node.link, "down")


def mend(node: Node) -> None:
    """Give a node that was cut off its network back."""
    run("ip", "link", "set", node.link, "up")


def host_routes(nodes: Sequence[Node]) -> list[str]:
    """Return the `ip` commands by which the host reaches pods and Services."""
    commands = [f"route replace {node.pod_range} via {node.address} dev {BRIDGE}" for node in nodes]
    control = next(node for node in nodes if node.control)
    return [*commands, f"route replace {SERVICE_RANGE} via {control.address} dev {BRIDGE}"]


def node_commands(node: Node, nodes: Sequence[Node]) -> list[str]:
    """Return the `ip` commands that configure a node from inside its network namespace."""
    return [
        "link set lo up",
        f"address replace {node.address}/{PREFIX_LENGTH} dev eth0",
        "link set eth0 up",
        *(f"route replace {other.pod_range} via {other.address}" for other in nodes if other != node),
        # A local process needs a route before kube-proxy's rules see its packet; the next hop is never used.
        f"route replace {SERVICE_RANGE} via {HOST_ADDRESS}",
        # There is no way out of the lab, and a clear refusal is better than a timeout.
        "route replace unreachable default",
    ]


def batch(*commands: str, prefix: Sequence[str] = ()) -> None:
    """Run `ip` commands in one process, on the host or behind a prefix that enters a namespace."""
    run(*prefix, "ip", "-batch", "-", stdin="\n".join(commands) + "\n")


def remove() -> None:
    """Remove the lab's links from the host; addresses and routes go with them."""
    for name in sorted(links(), reverse=True):
        run("ip", "link", "delete", name)
