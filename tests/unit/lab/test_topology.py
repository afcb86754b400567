"""Addresses and routes of the lab's machines."""

import ipaddress

from lab import network, topology


def test_the_first_node_has_the_control_plane_and_the_others_are_workers() -> None:
    nodes = topology.nodes(3)

    assert [node.name for node in nodes] == ["control", "worker-1", "worker-2"]
    assert [node.control for node in nodes] == [True, False, False]
    assert topology.control_plane(nodes[0]).address == nodes[0].address


def test_no_two_nodes_share_an_address_or_a_pod_range() -> None:
    nodes = topology.nodes(9)
    ranges = [ipaddress.ip_network(node.pod_range) for node in nodes]

    assert len({node.address for node in nodes}) == len(nodes)
    assert all(one.subnet_of(ipaddress.ip_network(topology.POD_RANGE)) for one in ranges)
    assert not any(one.overlaps(other) for one in ranges for other in ranges if one != other)
    assert all(len(node.link) <= 15 for node in nodes), "Linux takes 15 characters"


def test_a_node_reaches_every_other_pod_range_but_never_leaves_the_lab() -> None:
    nodes = topology.nodes(3)

    commands = network.node_commands(nodes[1], nodes)

    assert "route replace 10.244.0.0/24 via 172.30.0.10" in commands
    assert "route replace 10.244.2.0/24 via 172.30.0.12" in commands
    assert not any("10.244.1.0/24" in command for command in commands), "its own pods are the CNI plugin's"
    assert "route replace unreachable default" in commands


def test_the_host_reaches_services_through_the_control_node() -> None:
    commands = network.host_routes(topology.nodes(2))

    assert "route replace 10.96.0.0/16 via 172.30.0.10 dev coil-lab" in commands
    assert "route replace 10.244.1.0/24 via 172.30.0.11 dev coil-lab" in commands
