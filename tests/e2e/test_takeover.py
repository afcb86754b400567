"""Neither another operator before coil, nor new versions of the charts, make a pod anew while jobs run."""

import copy
import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coil.api import keys
from lab import binaries, images
from lab import cluster as lab
from lab.cluster import KUBECONFIG
from lab.install import CHARTS, CRDS, OPERATOR, SLURM, in_lab
from tests.support.kubectl import Kubectl, wait_until
from tests.support.operator import Operator
from tests.support.slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.timeout(600)]

THEIRS = "theirs"
"""A revision hash that coil would not compute."""
NEXT = "9.0.0"
CHART = "helm.sh/chart"


def identities(cluster: SlurmCluster) -> dict[str, tuple[str, int]]:
    """Uid and restarts of each pod of the cluster."""
    pods = cluster.kubectl.get("pods", "--namespace", cluster.name) or []
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            sum(map(restarts, pod["status"].get("containerStatuses", ()))),
        )
        for pod in pods
    }


def restarts(status: dict[str, Any]) -> int:
    """Restarts of one container."""
    return status["restartCount"]


def secrets(cluster: SlurmCluster) -> dict[str, dict[str, str]]:
    """What the Secrets of the cluster hold, those of Helm left out."""
    found = cluster.kubectl.get("secrets", "--namespace", cluster.name) or []
    return {item["metadata"]["name"]: item.get("data", {}) for item in found if "helm.sh" not in item["type"]}


def stateful_set(cluster: SlurmCluster) -> dict[str, Any]:
    """That of slurmctld."""
    return cluster.kubectl.get("statefulset", f"{cluster.name}-controller", "--namespace", cluster.name)


def nodeset(cluster: SlurmCluster) -> dict[str, Any]:
    """The only one."""
    [found] = cluster.kubectl.get("nodesets", "--namespace", cluster.name)
    return found


@pytest.fixture
def stopped(kubectl: Kubectl) -> Iterator[Operator]:
    """The operator, which does not run."""
    operator = Operator(kubectl)
    operator.scale(0)
    yield operator
    if not operator.pods():
        operator.scale(1)


def test_a_cluster_of_another_operator_is_taken_over(cluster: SlurmCluster, stopped: Operator) -> None:
    """Other scripts, hashes and labels; then a user changes something."""
    as_another_operator_left_it(cluster)
    job = cluster.submit("sleep 30")
    cluster.wait_job(job, "RUNNING")
    before = identities(cluster)

    stopped.scale(1)
    wait_until(
        lambda: keys.ANNOTATION_POD_TEMPLATE in annotations(stateful_set(cluster)), within=90, what="a mark"
    )
    wait_until(lambda: [ours for ours in revisions(cluster).values() if ours], within=60, what="a stand-in")
    cluster.wait_job(job, "COMPLETED", within=120)
    assert identities(cluster) == before

    cluster.scale(3)
    cluster.wait_idle(3, within=120)
    assert identities(cluster).items() > before.items()
    assert {pod["metadata"]["labels"][keys.LABEL_REVISION] for pod in cluster.workers().values()} == {THEIRS}
    assert nodeset(cluster)["status"]["updatedReplicas"] == 3

    slurmctld, rest = f"{cluster.name}-controller-0", set(before) - {f"{cluster.name}-controller-0"}
    patch = {"spec": {"slurmctld": {"env": [{"name": "LOOK", "value": "new"}]}}}
    where = ["--type=merge", "--namespace", cluster.name]
    cluster.kubectl.run("patch", "controller", cluster.name, "-p", json.dumps(patch), *where)
    wait_until(
        lambda: identities(cluster).get(slurmctld, before[slurmctld]) != before[slurmctld],
        within=90,
        what="slurmctld is made anew for a change of its Controller",
    )
    assert {name: identities(cluster)[name] for name in rest} == {name: before[name] for name in rest}


def annotations(item: dict[str, Any]) -> dict[str, str]:
    """Annotations of an object."""
    return item["metadata"].get("annotations", {})


def revisions(cluster: SlurmCluster) -> dict[str, str]:
    """Revisions of the workers, and the hash of ours that each stands for."""
    found = cluster.kubectl.get("controllerrevisions", "--namespace", cluster.name) or []
    mine = [item for item in found if item["metadata"]["ownerReferences"][0]["kind"] == "NodeSet"]
    return {item["metadata"]["name"]: annotations(item).get(keys.ANNOTATION_STANDS_FOR, "") for item in mine}


def as_another_operator_left_it(cluster: SlurmCluster) -> None:
    """Write what coil would not, wait for the new slurmctld, and give the workers another revision."""
    found = (
        stateful_set(cluster),
        cluster.kubectl.get("deployment", f"{cluster.name}-restapi", "--namespace", cluster.name),
    )
    for workload in found:
        replace(cluster, foreign(workload))
    for kind, item in zip(("statefulset", "deployment"), found, strict=True):
        name = item["metadata"]["name"]
        cluster.kubectl.run(
            "rollout", "status", kind, name, "--timeout=120s", "--namespace", cluster.name, within=150
        )
    active = f"{keys.LABEL_ACTIVE}=true"
    cluster.kubectl.run("label", "pod", f"{cluster.name}-controller-0", active, "--namespace", cluster.name)
    for name in cluster.workers():
        label = f"{keys.LABEL_REVISION}={THEIRS}"
        cluster.kubectl.run("label", "pod", name, label, "--overwrite", "--namespace", cluster.name)
    for name in revisions(cluster):
        rename_revision(cluster, name)
    patch = json.dumps({"status": {"nodeSetHash": THEIRS}})
    options = ["--subresource=status", "--type=merge", "--namespace", cluster.name]
    cluster.kubectl.run("patch", "nodeset", "cpu", "-p", patch, *options)
    cluster.wait_idle(2)


def foreign(workload: dict[str, Any]) -> dict[str, Any]:
    """A workload with another script, hash and label in its pods, and without our mark."""
    made = copy.deepcopy(workload)
    del made["metadata"]["annotations"][keys.ANNOTATION_POD_TEMPLATE]
    template = made["spec"]["template"]
    template["metadata"]["labels"]["app.kubernetes.io/version"] = "25.11"
    template["metadata"]["annotations"][keys.ANNOTATION_SLURM_KEY_HASH] = "0" * 64
    for container in template["spec"].get("initContainers", ()):
        container["command"][-1] += "\n# of another operator"
    return made


def rename_revision(cluster: SlurmCluster, name: str) -> None:
    """Give a revision the name and label of another hash."""
    old = cluster.kubectl.get("controllerrevision", name, "--namespace", cluster.name)
    kept = {key: value for key, value in old["metadata"].items() if key not in ("uid", "resourceVersion")}
    labels = {**kept["labels"], keys.LABEL_REVISION: THEIRS}
    new = {**old, "metadata": {**kept, "name": f"cpu-{THEIRS}", "labels": labels}}
    cluster.kubectl.run("create", "-f", "-", stdin=json.dumps(new))
    cluster.kubectl.run("delete", "controllerrevision", name, "--namespace", cluster.name)


def replace(cluster: SlurmCluster, item: dict[str, Any]) -> None:
    """Put an object in place of the live one."""
    cluster.kubectl.run("replace", "-f", "-", stdin=json.dumps(item))


@dataclass(frozen=True)
class Helm:
    """helm as a person uses it."""

    folder: Path

    def run(self, *arguments: str) -> str:
        """Run one command; raise with its error text when it fails."""
        command = [str(binaries.binary("helm")), *arguments, "--kubeconfig", str(KUBECONFIG)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def newer(self, chart: str) -> str:
        """The chart with a higher version, as an archive."""
        self.run("package", str(CHARTS / chart), f"--version={NEXT}", f"--destination={self.folder}")
        return str(self.folder / f"{chart}-{NEXT}.tgz")

    def upgrade(self, release: str, chart: str, namespace: str) -> None:
        """To the newer chart, with the values that it has."""
        self.run("upgrade", release, self.newer(chart), "--reuse-values", "--namespace", namespace, "--wait")

    def rollback(self, release: str, namespace: str) -> None:
        """To the version before."""
        self.run("rollback", release, "--namespace", namespace, "--wait")


@pytest.fixture
def reinstalled() -> Iterator[None]:
    """The lab's operator is as it was, whatever happens."""
    yield
    world = in_lab(Path(KUBECONFIG))
    world.install(CRDS)
    world.install(OPERATOR)


@pytest.mark.usefixtures("reinstalled")
def test_new_chart_versions_rollback_and_removal_while_a_job_runs(
    new_cluster: Callable[[], SlurmCluster], tmp_path: Path
) -> None:
    """Charts of a higher version, back again, and away: no pod and no job notices, and keys are kept."""
    cluster, helm = new_cluster(), Helm(tmp_path)
    name = cluster.name
    values = [f"--values={file}" for file in SLURM.values]
    install = ["--namespace", name, "--create-namespace", f"--set=fullnameOverride={name}", *values]
    helm.run("install", name, str(CHARTS / "slurm"), *install)
    cluster.wait_idle(2, within=150)
    images.build(["login"])
    lab.load(images.IMAGES["login"].reference)
    assert "Succeeded" in helm.run("test", name, "--namespace", name)
    assert f"{name}-test" not in identities(cluster)
    job = cluster.submit("sleep 60", "--nodes=2")
    cluster.wait_job(job, "RUNNING")
    before, held = identities(cluster), secrets(cluster)

    charts = [
        (CRDS.name, CRDS.name, "slinky"),
        (OPERATOR.name, OPERATOR.name, "slinky"),
        (name, "slurm", name),
    ]
    for release, chart, namespace in charts:
        helm.upgrade(release, chart, namespace)
    wait_chart(cluster, f"slurm-{NEXT}")
    assert (identities(cluster), secrets(cluster)) == (before, held)

    for release, _, namespace in reversed(charts):
        helm.rollback(release, namespace)
    wait_chart(cluster, "slurm-0")
    assert (identities(cluster), secrets(cluster)) == (before, held)

    helm.run("uninstall", OPERATOR.name, "--namespace", "slinky", "--wait")
    helm.run("uninstall", CRDS.name, "--namespace", "slinky")
    assert nodeset(cluster)["spec"]["replicas"] == 2
    ended = cluster.wait_job(job, "COMPLETED", within=150)
    assert ended["Restarts"] == "0"
    assert identities(cluster) == before

    in_lab(Path(KUBECONFIG)).install(OPERATOR)
    helm.run("uninstall", name, "--namespace", name, "--wait")
    wait_until(
        lambda: not cluster.kubectl.get("pods", "--namespace", name), within=120, what="the pods are gone"
    )
    kept = secrets(cluster)
    assert {f"{name}-auth-slurm", f"{name}-auth-jwt"} <= kept.keys()
    assert all(held[secret] == data for secret, data in kept.items())
    claims = cluster.kubectl.get("persistentvolumeclaims", "--namespace", name)
    assert [claim["metadata"]["name"] for claim in claims] == [f"statesave-{name}-controller-0"]


def wait_chart(cluster: SlurmCluster, version: str) -> None:
    """Wait until coil has brought the chart's version to what it made."""
    wait_until(
        lambda: stateful_set(cluster)["metadata"]["labels"][CHART].startswith(version),
        within=60,
        what=f"the StatefulSet is labelled {version}",
    )
