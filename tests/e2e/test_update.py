"""A new pod template reaches all workers, and no job notices."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from coil.api import keys
from tests.support import chaos
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


def test_a_bad_image_costs_no_more_than_the_limit(new_cluster: Callable[[], SlurmCluster]) -> None:
    """One worker of three is lost, the others go on; the condition names the image; corrected, the roll ends.

    An admin's drain of one of them outlives it all.
    """
    cluster = new_cluster()
    cluster.create(replicas=3)
    cluster.wait_idle(3)
    cluster.drain("cpu-1", "bad DIMM")
    old = set(revisions(cluster).values())
    chaos.set_image(cluster, "coil.local/slurmd:missing")

    def told() -> bool:
        said = cluster.condition("nodeset", "cpu", "Reconciled")
        return said["status"] == "False" and "coil.local/slurmd:missing cannot be pulled" in said["message"]

    wait_until(told, within=60, what="the condition names the image")
    job = cluster.submit("sleep 5")

    def ended() -> bool:
        ready = [name for name, pod in cluster.workers().items() if is_ready(pod)]
        assert len(ready) >= 2, ready
        return cluster.job(job).get("JobState") == "COMPLETED"

    wait_until(ended, within=60, what="a job ends on those that are left")
    assert len([revision for revision in revisions(cluster).values() if revision in old]) == 2
    chaos.tag_next_image()
    chaos.set_image(cluster, chaos.NEXT_IMAGE)
    corrected = time.monotonic()

    def rolled() -> bool:
        now = set(revisions(cluster).values())
        return len(now) == 1 and not now & old

    wait_until(rolled, within=90, what="all workers have the good image")
    print(f"\n3 workers rolled one by one {time.monotonic() - corrected:.1f} s after the image was corrected")
    cluster.wait_idle(2)
    wait_until(
        lambda: cluster.condition("nodeset", "cpu", "Reconciled")["status"] == "True",
        within=60,
        what="the condition is good again",
    )
    assert cluster.drain_reason("cpu-1") == "bad DIMM"


def is_ready(pod: dict[str, Any]) -> bool:
    """The kubelet says so, and it does not end."""
    conditions = pod["status"].get("conditions", [])
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def revisions(cluster: SlurmCluster) -> dict[str, str]:
    """Revision of each worker."""
    return {name: pod["metadata"]["labels"][keys.LABEL_REVISION] for name, pod in cluster.workers().items()}


def change_template(cluster: SlurmCluster) -> None:
    """Another annotation on all workers."""
    patch = {"spec": {"template": {"metadata": {"annotations": {"example.test/look": "new"}}}}}
    cluster.kubectl.run(
        "patch", "nodeset", "cpu", "--type=merge", "-p", json.dumps(patch), "--namespace", cluster.name
    )
