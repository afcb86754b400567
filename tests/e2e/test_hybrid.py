"""slurmctld, or slurmdbd, is a plain process outside of Kubernetes (docs/hybrid.md)."""

import re
import secrets
import shutil
import string
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.topology import HOST_ADDRESS
from tests.support import slurm
from tests.support.accounting import refer
from tests.support.kubectl import Kubectl, wait_until
from tests.support.slurm_cluster import SlurmCluster
from tests.support.slurmdbd import Slurmdbd, database

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(slurm.missing()), reason=slurm.missing()),
]

MANIFESTS = string.Template((Path(__file__).parents[1] / "data/e2e/hybrid.yaml").read_text())
NAME = "outside"
SLURMCTLD = "app.kubernetes.io/name=slurmctld"
ACCOUNTING = string.Template(
    """
apiVersion: slinky.slurm.net/v1beta1
kind: Accounting
metadata: {name: dbd, namespace: $name}
spec:
  external: true
  externalConfig: {host: $host, port: $port}
"""
)


@pytest.fixture
def outside() -> Iterator[slurm.SlurmCluster]:
    """Folders, keys and slurm.conf of a Slurm cluster on the lab's host, which pods reach; nothing runs."""
    state = Path(tempfile.mkdtemp(prefix="coil-hybrid-"))
    state.chmod(0o755)
    made = slurm.SlurmCluster(state)
    conf = state / "etc/slurm.conf"
    text = conf.read_text().replace("ClusterName=contract", f"ClusterName={NAME}")
    text = text.replace("SlurmctldHost=ctl(127.0.0.1)", f"SlurmctldHost=ctl({HOST_ADDRESS})")
    text = text.replace("CommunicationParameters=NoCtldInAddrAny\n", "")
    text = text.replace(f"SlurmdPort={made.ports['slurmd']}", "SlurmdPort=6818")
    text += "SlurmctldParameters=enable_configless\nNodeSet=cpu Feature=cpu\n"
    conf.write_text(text)
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(state, ignore_errors=True)


@pytest.fixture
def namespace(kubectl: Kubectl, outside: slurm.SlurmCluster) -> Iterator[str]:
    """A namespace with the keys of the cluster outside."""
    name = f"e2e-{secrets.token_hex(3)}"
    keys = [f"--from-file={key}={outside.state}/etc/{key}" for key in ("slurm.key", "jwt.key")]
    kubectl.run("create", "namespace", name)
    kubectl.run("create", "secret", "generic", "keys", "--namespace", name, *keys)
    yield name
    kubectl.run("delete", "namespace", name, "--wait=false")


def test_workers_in_kubernetes_serve_a_slurmctld_outside(
    kubectl: Kubectl, outside: slurm.SlurmCluster, namespace: str
) -> None:
    """Pods register, run a job over both, and are drained before a scale-in deletes them."""
    outside.start_ctld()
    port = outside.ports["ctld"]
    kubectl.apply(MANIFESTS.substitute(name=namespace, cluster=NAME, host=HOST_ADDRESS, port=port))

    def idle() -> list[str]:
        return outside.run("sinfo", "--noheader", "--Node", "--states=idle", "--format=%N").split()

    wait_until(lambda: sorted(idle()) == ["cpu-0", "cpu-1"], within=90, what="two idle workers outside")
    hosts = kubectl.exec(namespace, "cpu-0", "slurmd", "srun", "--nodes=2", "hostname")
    assert sorted(hosts.split()) == ["cpu-0", "cpu-1"]
    told = SlurmCluster(kubectl, namespace)
    wait_until(
        lambda: told.condition("controller", namespace, "SlurmReachable").get("status") == "True",
        within=30,
        what="the operator reaches the slurmctld outside",
    )
    kubectl.run("scale", "nodeset", "cpu", "--replicas=1", "--namespace", namespace)
    wait_until(lambda: list(told.workers()) == ["cpu-0"], within=60, what="one worker is left")
    assert not kubectl.get("statefulsets,services", "--namespace", namespace, "--selector", SLURMCTLD)


def test_a_cluster_in_kubernetes_keeps_accounts_outside(
    kubectl: Kubectl, outside: slurm.SlurmCluster, new_cluster: Callable[[], SlurmCluster]
) -> None:
    """A job is in the database of a slurmdbd that runs beside Kubernetes, with the same keys."""
    cluster = new_cluster()
    manifests = refer(cluster.manifests(replicas=1), "dbd")
    [key] = set(re.findall(r'(?:slurm|jwt)\.key: "(\w+)"', manifests))
    for file in ("slurm.key", "jwt.key"):
        (outside.state / "etc" / file).write_text(key)
    slurmdbd = Slurmdbd(outside)
    with database() as port:
        slurmdbd.configure(port)
        slurmdbd.start()
        try:
            where = ACCOUNTING.substitute(name=cluster.name, host=HOST_ADDRESS, port=slurmdbd.port)
            kubectl.apply(f"{manifests}\n---\n{where}")
            cluster.wait_idle(1)
            job = cluster.submit("true")
            ask = ("sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={job}", "--format=State")
            wait_until(
                lambda: cluster.try_slurm(*ask).strip() == "COMPLETED", within=60, what="the job is in sacct"
            )
            assert kubectl.get("statefulset", "dbd-accounting", "--namespace", cluster.name) is None
        finally:
            slurmdbd.stop()
