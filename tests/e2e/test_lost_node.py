"""A machine dies: its workers come back elsewhere when they may, and nobody else notices (`make soak`)."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from lab import cluster as lab
from lab import daemons, topology
from lab.topology import Node
from tests.support.kubectl import Kubectl, wait_until
from tests.support.operator import Operator, processes_of
from tests.support.slurm_cluster import SlurmCluster

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(600),
    pytest.mark.skipif("COIL_SOAK_SECONDS" not in os.environ, reason="takes minutes: `make soak`"),
]

REASON = "bad DIMM"
SOON = "{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 5}"
CHANGES = {
    'slurmd: {image: "coil.local/slurmd:lab"}\n': (
        'slurmd: {image: "coil.local/slurmd:lab"}\n  template: {spec: {tolerations: [' + SOON + "]}}\n"
    ),
    "configFileRefs: [{name: files}]\n": "configFileRefs: [{name: files}]\n  extraConf: SlurmdTimeout=20\n",
}


@pytest.fixture
def machine(kubectl: Kubectl) -> Iterator[Node]:
    """A node of the lab without the operator; it is well again afterwards."""
    busy = {pod["spec"]["nodeName"] for pod in Operator(kubectl).pods().values()}
    nodes = topology.recorded_nodes()
    yield next(node for node in nodes if not node.control and node.name not in busy)
    lab.up(len(nodes))


def test_a_machine_that_dies(
    new_cluster: Callable[[], SlurmCluster], kubectl: Kubectl, machine: Node
) -> None:
    """Pods stay until the machine is given up; their successors take over name and record."""
    cluster = new_cluster()
    kubectl.run("cordon", machine.name)  # Slurm's own pods are to survive
    cluster.create(replicas=0)
    wait_until(lambda: cluster.try_slurm("sinfo"), within=90, what="slurmctld answers")
    kubectl.run("uncordon", machine.name)
    set_up_workers(cluster)
    lost = {name for name, pod in cluster.workers().items() if pod["spec"]["nodeName"] == machine.name}
    stay = {name: uid(pod) for name, pod in cluster.workers().items() if name not in lost}
    assert len(lost) > 1, "the scheduler put no two workers there"
    assert stay, "the scheduler put all workers there"
    drained = min(lost)
    cluster.drain(drained, REASON)
    job = cluster.submit("sleep 150", f"--nodelist={min(stay)}")
    cluster.wait_job(job, "RUNNING")
    kill(machine, [uid(cluster.workers()[name]) for name in lost])

    def terminating() -> bool:
        pods = cluster.workers()
        return all("deletionTimestamp" in pods[name]["metadata"] for name in lost)

    wait_until(terminating, within=120, what="Kubernetes gives the workers up")
    wait_until(lambda: all(is_down(cluster, name) for name in lost), within=90, what="Slurm gives them up")
    # Nothing more happens while the machine might come back: the names are taken.
    assert set(cluster.workers()) == lost | set(stay)
    kubectl.run("delete", "node", machine.name)
    began = time.monotonic()

    def replaced() -> bool:
        pods = cluster.workers()
        return set(pods) == lost | set(stay) and all(
            pods[name]["spec"].get("nodeName") not in (None, machine.name) for name in lost
        )

    # Kubernetes removes pods of a Node that is gone 40 to 80 s later.
    wait_until(replaced, within=120, what="the workers are elsewhere")
    made = time.monotonic()
    wait_until(lambda: lost - {drained} <= cluster.idle(), within=90, what="their Slurm nodes are idle")
    took = time.monotonic() - made
    print(f"\nmade elsewhere {made - began:.1f} s after the end of their Node, idle {took:.1f} s later")
    # The records are those of the successors, and what an admin said of one is still said.
    wait_until(lambda: described_anew(cluster, lost, machine), within=30, what="comments of the new")
    # Slurm adds to it that the machine did not respond.
    assert cluster.drain_reason(drained).split(" : ")[0] == REASON
    assert {name: uid(pod) for name, pod in cluster.workers().items() if name in stay} == stay
    assert cluster.wait_job(job, "COMPLETED", within=180)["Restarts"] == "0"


def set_up_workers(cluster: SlurmCluster) -> None:
    """Four workers that leave a silent machine soon, in a Slurm that notices soon."""
    text = cluster.manifests(replicas=4)
    for plain, changed in CHANGES.items():
        assert plain in text
        text = text.replace(plain, changed)
    parts = [part for part in text.split("---\n") if "kind: NodeSet" in part or "kind: Controller" in part]
    cluster.kubectl.apply("---\n".join(parts))
    cluster.wait_idle(4)


def uid(pod: dict[str, Any]) -> str:
    """Which incarnation of the pod this is."""
    return pod["metadata"]["uid"]


def is_down(cluster: SlurmCluster, name: str) -> bool:
    """Slurm has given the node up as silent."""
    record = cluster.try_slurm("scontrol", "show", "node", name)
    return "State=DOWN" in record and ("Not responding" in record or f"Reason={REASON}" in record)


def described_anew(cluster: SlurmCluster, names: set[str], machine: Node) -> bool:
    """The comments of their records name other machines."""
    records = [cluster.try_slurm("scontrol", "show", "node", name) for name in names]
    named = [re.search(r'"node":"([^"]+)"', record) for record in records]
    return all(found and found[1] != machine.name for found in named)


def kill(machine: Node, pods: list[str]) -> None:
    """The machine loses its kubelet, its containerd and what runs in these pods."""
    for program in ("kubelet", "containerd"):
        daemons.stop(machine.daemon(program), grace_seconds=0)
    for pod in pods:
        for process in processes_of(pod, b"slurmd"):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
