"""What NetworkPolicies allow, for clusters whose network does not enforce them (as the lab's).

    network = Network(policies)
    network.allows(login, slurmctld, 6817)

Follows networking.k8s.io/v1: a pod that a policy selects for a direction takes (or makes) in that direction
only what some rule of such a policy names; a connection needs both ends. Answers belong to their connection.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Selector = Mapping[str, Any]


@dataclass(frozen=True)
class Pod:
    """One end of a connection; without labels an address outside of the pod network."""

    labels: Mapping[str, str] | None = None
    namespace: str = ""
    address: str = "10.244.0.1"
    ports: Mapping[str, int] = field(default_factory=dict[str, int])
    """Named container ports."""

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> "Pod":
        """A pod as the API server shows it."""
        containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
        ports = {
            port["name"]: port["containerPort"]
            for container in containers
            for port in container.get("ports", [])
            if "name" in port
        }
        metadata = pod["metadata"]
        return cls(metadata.get("labels", {}), metadata["namespace"], ports=ports)


@dataclass(frozen=True)
class Network:
    """A cluster's policies. Every namespace has the label with its name and no other."""

    policies: Sequence[Mapping[str, Any]]

    def allows(self, source: Pod, target: Pod, port: int, protocol: str = "TCP") -> bool:
        """Whether `source` may open a connection to this port of `target`."""
        return self._passes("Egress", source, target, target, port, protocol) and self._passes(
            "Ingress", target, source, target, port, protocol
        )

    def _passes(self, direction: str, own: Pod, peer: Pod, target: Pod, port: int, protocol: str) -> bool:
        applying = [policy for policy in self.policies if _applies(policy, direction, own)]
        rules = [
            (policy["metadata"]["namespace"], rule)
            for policy in applying
            for rule in policy["spec"].get(direction.lower(), [])
        ]
        member = "from" if direction == "Ingress" else "to"
        return not applying or any(
            _names_peer(rule.get(member), namespace, peer)
            and _names_port(rule.get("ports"), target, port, protocol)
            for namespace, rule in rules
        )


def _applies(policy: Mapping[str, Any], direction: str, pod: Pod) -> bool:
    spec = policy["spec"]
    types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if "egress" in spec else [])]
    return (
        direction in types
        and pod.labels is not None
        and policy["metadata"]["namespace"] == pod.namespace
        and selects(spec["podSelector"], pod.labels)
    )


def _names_peer(peers: Sequence[Mapping[str, Any]] | None, namespace: str, pod: Pod) -> bool:
    """Whether a rule's peers have the pod among them; no peers mean everybody."""
    return not peers or any(_is_peer(peer, namespace, pod) for peer in peers)


def _is_peer(peer: Mapping[str, Any], namespace: str, pod: Pod) -> bool:
    if "ipBlock" in peer:
        address, block = ipaddress.ip_address(pod.address), peer["ipBlock"]
        excepted = [ipaddress.ip_network(cidr) for cidr in block.get("except", [])]
        return address in ipaddress.ip_network(block["cidr"]) and not any(address in net for net in excepted)
    if pod.labels is None:
        return False
    if "namespaceSelector" in peer:
        label = {"kubernetes.io/metadata.name": pod.namespace}
        here = selects(peer["namespaceSelector"], label)
    else:
        here = pod.namespace == namespace
    return here and selects(peer.get("podSelector", {}), pod.labels)


def _names_port(ports: Sequence[Mapping[str, Any]] | None, target: Pod, number: int, protocol: str) -> bool:
    return not ports or any(
        port.get("protocol", "TCP") == protocol and _has_port(port, target, number) for port in ports
    )


def _has_port(port: Mapping[str, Any], target: Pod, number: int) -> bool:
    first = port.get("port")
    if first is None:
        return True
    if isinstance(first, str):
        return target.ports.get(first) == number
    return first <= number <= port.get("endPort", first)


def selects(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches; an empty one matches everything."""
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _expression(each, labels) for each in selector.get("matchExpressions") or []
    )


def _expression(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values", [])
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case operator:
            raise AssertionError(f"no such operator: {operator}")
