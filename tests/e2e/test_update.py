"""A new pod template reaches all workers, and no job notices."""

import json

import pytest

from coil.api import keys
from tests.support.kubectl import wait_until
from tests.support.slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]


def test_a_job_outlives_a_rolling_update(cluster: SlurmCluster) -> None:
    """The idle worker is replaced at once, the busy one when its job has ended."""
    busy, idle = sorted(cluster.idle())
    job = cluster.submit("sleep 40", f"--nodelist={busy}")
    cluster.wait_job(job, "RUNNING")
    old = set(revisions(cluster).values())
    change_template(cluster)

    wait_until(lambda: revisions(cluster).get(idle, "") not in old, within=90, what=f"{idle} is replaced")
    assert cluster.job(job)["JobState"] == "RUNNING"
    assert revisions(cluster)[busy] in old

    ended = cluster.wait_job(job, "COMPLETED", within=120)
    assert ended["ExitCode"] == "0:0"
    wait_until(lambda: not old & set(revisions(cluster).values()), within=90, what="all are replaced")
    cluster.wait_idle(2)


def revisions(cluster: SlurmCluster) -> dict[str, str]:
    """Revision of each worker."""
    return {name: pod["metadata"]["labels"][keys.LABEL_REVISION] for name, pod in cluster.workers().items()}


def change_template(cluster: SlurmCluster) -> None:
    """Another annotation on all workers."""
    patch = {"spec": {"template": {"metadata": {"annotations": {"example.test/look": "new"}}}}}
    cluster.kubectl.run(
        "patch", "nodeset", "cpu", "--type=merge", "-p", json.dumps(patch), "--namespace", cluster.name
    )
