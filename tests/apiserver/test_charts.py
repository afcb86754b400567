"""The charts on a real API server: install, upgrade, uninstall, install again."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.apiserver import ApiServer
from tests.support.apiserver import kubectl
from tests.support.charts import CHARTS, helm

pytestmark = pytest.mark.apiserver

OPERATOR = ("--set", "webhook.enabled=false", "--set", "certManager.enabled=false")
CLUSTER = (
    *("--set", "clusterName=lab", "--set", "nodesets.cpu.replicas=2", "--set", "loginsets.main.replicas=1"),
    *("--set", "partitions.all.enabled=true", "--set", "accounting.enabled=true"),
    *("--set", "nodesets.cpu.ssh.enabled=true", "--set", "nodesets.cpu.partition.enabled=true"),
    *("--set", "nodesets.cpu.partition.config=State=UP", "--set", "restapi.pdb.enabled=true"),
)


def run_helm(server: ApiServer, *arguments: str) -> str:
    command = [str(helm()), f"--kubeconfig={server.kubeconfig}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def install(server: ApiServer, chart: str, namespace: str, *arguments: str, release: str = "") -> str:
    command = ("upgrade", "--install", release or chart, str(CHARTS / chart), "--namespace", namespace)
    return run_helm(server, *command, *arguments)


def get(server: ApiServer, kind: str, name: str, namespace: str) -> dict[str, Any]:
    return json.loads(kubectl(server, "get", kind, name, "-n", namespace, "-o", "json"))


@pytest.fixture
def server(api_server: ApiServer, namespace: str) -> Iterator[ApiServer]:
    """The API server with the CRDs, whoever made them; releases of the test are removed."""
    folder: Path = CHARTS / "slurm-operator-crds" / "templates"
    kubectl(api_server, "apply", "--server-side", "--force-conflicts", "-f", str(folder))
    kubectl(api_server, "wait", "--for=condition=Established", "--timeout=30s", "-f", str(folder))
    yield api_server
    for release in run_helm(api_server, "list", "--short", "--namespace", namespace).split():
        run_helm(api_server, "uninstall", release, "--namespace", namespace)


def test_a_cluster_installs_and_its_objects_are_as_rendered(server: ApiServer, namespace: str) -> None:
    notes = install(server, "slurm", namespace, *CLUSTER)
    assert "ssh -p 22 root@" in notes
    for kind in ("controller", "accounting", "restapi"):
        assert get(server, kind, "slurm", namespace)["metadata"]["name"] == "slurm"
    workers = get(server, "nodeset", "slurm-worker-cpu", namespace)["spec"]
    assert workers["replicas"] == 2
    assert workers["partition"] == {"enabled": True, "config": "State=UP"}
    assert get(server, "loginset", "slurm-login-main", namespace)["spec"]["sssdConfRef"]["key"] == "sssd.conf"


def test_keys_survive_upgrade_uninstall_and_a_new_installation(server: ApiServer, namespace: str) -> None:
    def keys() -> list[str]:
        names = ("slurm-auth-slurm", "slurm-auth-jwt")
        return [str(get(server, "secret", name, namespace)["data"]) for name in names]

    install(server, "slurm", namespace, *CLUSTER)
    first = keys()
    install(server, "slurm", namespace, *CLUSTER, "--set", "nodesets.cpu.replicas=3")
    assert keys() == first
    run_helm(server, "uninstall", "slurm", "--namespace", namespace)
    assert keys() == first
    install(server, "slurm", namespace, *CLUSTER)
    assert keys() == first


def test_an_upgrade_does_not_change_a_scaled_value_that_nobody_set(server: ApiServer, namespace: str) -> None:
    install(server, "slurm", namespace, *CLUSTER)
    before = get(server, "nodeset", "slurm-worker-cpu", namespace)["metadata"]["generation"]
    install(server, "slurm", namespace, *CLUSTER)
    assert get(server, "nodeset", "slurm-worker-cpu", namespace)["metadata"]["generation"] == before


def test_the_webhook_objects_are_accepted(server: ApiServer, namespace: str) -> None:
    values = ("--set", "certManager.enabled=false", "--set", "webhook.podsBinding=true")
    pdbs = (
        "--set",
        "webhook.replicas=2",
        "--set",
        "webhook.pdb.enabled=true",
        "--set",
        "operator.namespaces=a",
    )
    release = f"w-{namespace}"
    text = install(server, "slurm-operator", namespace, *values, *pdbs, "--dry-run=server", release=release)
    assert "ValidatingWebhookConfiguration" in text


def test_crds_stay_when_their_release_goes(api_server: ApiServer, namespace: str) -> None:
    folder = str(CHARTS / "slurm-operator-crds" / "templates")
    kubectl(api_server, "delete", "--ignore-not-found", "--wait", "-f", folder)
    install(api_server, "slurm-operator-crds", namespace)
    run_helm(api_server, "uninstall", "slurm-operator-crds", "--namespace", namespace)
    kubectl(api_server, "get", "-f", folder)
    install(api_server, "slurm-operator-crds", namespace)
    kubectl(api_server, "wait", "--for=condition=Established", "--timeout=30s", "-f", folder)
