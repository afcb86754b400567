"""A control plane with simulated machines, a real Slurm with as many nodes, and room for an operator."""

import asyncio
import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.scale import audit
from coil.api import crd
from coil.kube import core
from coil.kube.client import Client
from coil.kube.config import load
from coil.kube.transport import Limits
from coil.support.clock import rfc3339, utc_now
from lab import binaries
from lab.apiserver import ApiServer, free_ports
from lab.certificates import Subject
from lab.processes import run, start, tail
from tests.support import slurm

GROUP, OPERATOR_USER = "coil-scale", "scale-operator"
PARALLEL = 32
"""Requests at a time of the bare loop."""
_SLURM_CONF = "SlurmdTimeout=0\n"
"""The nodes have no slurmd that could fall silent."""
_ALIVE_S = 86_400
"""Simulated machines send no sign of life: it is the operator that is measured, not the leases."""
STAGES = Path(__file__).with_name("stages.yaml")
_MACHINE = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}


class World:
    """All that runs beside the operator. `folder` has the log files."""

    def __init__(self, folder: Path, server: ApiServer, cluster: slurm.SlurmCluster) -> None:
        self.folder = folder
        self.server = server
        self.cluster = cluster

    def kubeconfig(self, user: str) -> Path:
        """A kubeconfig of a user who may do everything, and is subject to the server's fairness."""
        path = self.folder / f"{user}.conf"
        if not path.exists():
            self.server.plane.write_kubeconfig(path, Subject(user, [GROUP]))
        return path

    def client(self, user: str, concurrent: int = PARALLEL) -> Client:
        """An API client of its own for a user."""
        return Client(load(str(self.kubeconfig(user))), Limits(concurrent=concurrent, deadline=120))

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as administrator."""
        command = [str(binaries.binary("kubectl")), f"--kubeconfig={self.server.kubeconfig}", *arguments]
        return run(*command, stdin=stdin)

    def apply(self, *objects: dict[str, Any], namespace: str = "default") -> None:
        """Create objects, or replace what they say."""
        items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "--server-side", "-n", namespace, "-f", "-", stdin=json.dumps(items))


@asynccontextmanager
async def world(count: int) -> AsyncIterator[World]:
    """A world of `count` machines and as many Slurm nodes, ready for an operator."""
    binaries.ensure("etcd", "kubernetes", "kwok")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="coil-scale-")))
        server = stack.enter_context(_server(folder))
        cluster = stack.enter_context(slurm.slurm_cluster(_SLURM_CONF))
        made = World(folder, server, cluster)
        await asyncio.to_thread(_install, made)
        stack.enter_context(_kwok(made))
        await asyncio.to_thread(cluster.create_nodes, hostlist(count))
        await _machines(made, count)
        yield made


def digits(count: int) -> int:
    """Digits of the ordinals: at least four, so that names look the same at every size."""
    return max(4, len(str(count - 1)))


def hostlist(count: int) -> str:
    """The Slurm nodes of ordinals 0 to count - 1."""
    width = digits(count)
    return f"sim-[{0:0{width}d}-{count - 1:0{width}d}]"


@contextmanager
def _server(folder: Path) -> Iterator[ApiServer]:
    policy = folder / "audit-policy.yaml"
    policy.write_text(audit.policy(OPERATOR_USER))
    with ApiServer(
        controller_manager=True,
        scheduler=True,
        apiserver_extra=[f"--audit-policy-file={policy}", "--audit-log-maxsize=2000"],
        controller_manager_extra=[f"--node-monitor-grace-period={_ALIVE_S}s"],
    ) as server:
        yield server


def _install(made: World) -> None:
    made.apply(*crd.all_definitions().values())
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": GROUP},
        "subjects": [{"kind": "Group", "name": GROUP, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {
            "kind": "ClusterRole",
            "name": "cluster-admin",
            "apiGroup": "rbac.authorization.k8s.io",
        },
    }
    made.apply(binding)
    made.kubectl("wait", "--for=condition=Established", "--timeout=60s", "--all", "crd")


@contextmanager
def _kwok(made: World) -> Iterator[None]:
    """The kubelets of all machines: pods are ready, and gone, as soon as they are asked to be."""
    command = [
        str(binaries.binary("kwok")),
        f"--kubeconfig={made.server.kubeconfig}",
        "--manage-all-nodes",
        "--cidr=10.32.0.0/11",
        "--node-ip=192.0.2.1",
        f"--config={STAGES}",
        "--v=WARN",
    ]
    with _ended(start(["setpriv", "--pdeathsig", "KILL", *command], made.folder / "kwok.log")):
        yield


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def _machines(made: World, count: int) -> None:
    """Make the machines, and wait until all take pods: the node controller takes a first taint off."""
    async with made.client("scale-setup") as client:
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(client.create(core.NODES, _machine(number)))
        async with asyncio.timeout(60 + count / 20):
            while await _tainted(client):  # noqa: ASYNC110 -- other processes set no event
                await asyncio.sleep(1)


async def _tainted(client: Client) -> bool:
    nodes = await client.list_page(core.NODES, limit=0)
    return any(node.spec.taints for node in nodes.items)


def _machine(number: int) -> dict[str, Any]:
    name, now = f"machine-{number:05d}", rfc3339(utc_now())
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    ready = {"type": "Ready", "status": "True", "reason": "Simulated"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": _MACHINE,
            "allocatable": _MACHINE,
            "conditions": [{**ready, "lastHeartbeatTime": now, "lastTransitionTime": now}],
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
        },
    }


@contextmanager
def operator(made: World, command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the operator's command line until the block ends; coil when it is empty.

    It finds KUBECONFIG in its environment, and DEBUG=1, by which it reaches slurmrestd on
    localhost:6820 and not by the name of a Service.
    """
    health, metrics = free_ports(2)
    own = f"{sys.executable} -m coil.service.manager --health-addr=127.0.0.1:{health}"
    words = shlex.split(command or f"{own} --metrics-addr=127.0.0.1:{metrics}")
    log = made.folder / "operator.log"
    environment = {**os.environ, "KUBECONFIG": str(made.kubeconfig(OPERATOR_USER)), "DEBUG": "1"}
    with log.open("ab") as output:
        process = subprocess.Popen(words, stdout=output, stderr=output, env=environment)
    with _ended(process):
        try:
            yield process
        except Exception as error:
            error.add_note(f"last lines of the operator:\n{tail(log)}")
            raise
