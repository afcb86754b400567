"""Slurm keys are replaced on a running cluster, by the steps of docs/keys.md."""

import json
import os
import secrets
from collections.abc import Callable

import pytest

from tests.support.kubectl import wait_until
from tests.support.live_config import runs
from tests.support.slurm import slurm_jwks
from tests.support.slurm_cluster import SlurmCluster

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not os.environ.get("COIL_SLURM_KEYS"), reason="waits for the kubelet: COIL_SLURM_KEYS=1"
    ),
]

PERIOD_S = 150.0
"""Longest until the kubelet has renewed a mounted Secret."""


def secret(cluster: SlurmCluster, content: str) -> None:
    """Create or change the Secret."""
    cluster.kubectl.apply(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "slurm-keys", "namespace": cluster.name},
                "stringData": {"slurm.jwks": content},
            }
        )
    )


def brought(cluster: SlurmCluster, content: str) -> None:
    """Wait until every pod has that file."""
    places = [(f"{cluster.name}-controller-0", "slurmctld"), *((pod, "slurmd") for pod in cluster.workers())]

    def there() -> bool:
        read = ("cat", "/etc/slurm/slurm.jwks")
        return all(cluster.kubectl.exec(cluster.name, *place, *read) == content for place in places)

    wait_until(there, within=PERIOD_S, what="the kubelet brings the file")


def agree(cluster: SlurmCluster, pod: str) -> bool:
    """A command beside slurmd is let in by slurmctld."""
    try:
        return cluster.kubectl.exec(cluster.name, pod, "slurmd", "sinfo", "--noheader", "-o%D").strip() == "2"
    except AssertionError:
        return False


def test_slurm_keys_are_replaced_while_a_job_runs(new_cluster: Callable[[], SlurmCluster]) -> None:
    cluster = new_cluster()
    first, second = secrets.token_bytes(64), secrets.token_bytes(64)
    text = cluster.manifests(replicas=2).replace(
        "slurmKeyRef: {name: keys, key: slurm.key}", "slurmKeyRef: {name: slurm-keys, key: slurm.jwks}"
    )
    cluster.kubectl.apply(text)
    secret(cluster, slurm_jwks("a", a=first))
    cluster.wait_idle(2)
    job = cluster.submit("sleep 900")
    cluster.wait_job(job, "RUNNING")
    before, started = runs(cluster), cluster.job(job)["StartTime"]
    for content in (
        slurm_jwks("a", a=first, b=second),
        slurm_jwks("b", a=first, b=second),
        slurm_jwks("b", b=second),
    ):
        secret(cluster, content)
        brought(cluster, content)
        cluster.slurm("scontrol", "reconfigure")
        for pod in cluster.workers():
            wait_until(lambda pod=pod: agree(cluster, pod), within=20, what=f"slurmctld lets {pod} in")
        found = cluster.job(job)
        assert (found["JobState"], found["StartTime"], found["Restarts"]) == ("RUNNING", started, "0")
    assert runs(cluster) == before
    cluster.slurm("scancel", str(job))
    cluster.wait_idle(2)
