"""Workers that come back under the name of an earlier one take work again (docs/adr/0031)."""

import pytest

from tests.support.kubectl import wait_until
from tests.support.slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]


def test_scaled_in_and_out_again(cluster: SlurmCluster) -> None:
    """Slurm keeps the record of the worker that left, DOWN and drained; its successor is idle."""
    cluster.scale(1)
    wait_until(lambda: len(cluster.workers()) == 1, within=90, what="one worker is left")
    cluster.scale(2)
    cluster.wait_idle(2)


def test_deleted_by_a_user(cluster: SlurmCluster) -> None:
    """The pod says good-bye to Slurm, which sets its node DOWN."""
    _delete(cluster, "--wait=false")
    cluster.wait_idle(2)


def test_deleted_by_force(cluster: SlurmCluster) -> None:
    """The pod says nothing; Slurm may or may not have noticed before its successor registers."""
    _delete(cluster, "--force", "--grace-period=0")
    cluster.wait_idle(2)


def _delete(cluster: SlurmCluster, *how: str) -> None:
    pod, before = min(cluster.workers().items(), key=lambda item: item[0])
    cluster.kubectl.run("delete", "pod", pod, "--namespace", cluster.name, *how)

    def another() -> bool:
        found = cluster.workers().get(pod)
        return bool(found) and found["metadata"]["uid"] != before["metadata"]["uid"]

    wait_until(another, within=90, what=f"another pod {pod}")
