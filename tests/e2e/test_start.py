"""From `kubectl apply` to a working cluster, with everything right and with something wrong."""

import time
from collections.abc import Callable

import pytest

from tests.support.kubectl import wait_until
from tests.support.slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]


def test_two_workers_idle_within_30_seconds(new_cluster: Callable[[], SlurmCluster]) -> None:
    """The whole cluster in one apply, references before what they refer to."""
    cluster = new_cluster()
    started = time.monotonic()
    cluster.create(replicas=2)
    cluster.wait_idle(2, within=30)
    print(f"two workers idle after {time.monotonic() - started:.1f} s")


def test_missing_key_secret(new_cluster: Callable[[], SlurmCluster]) -> None:
    """The Controller says which Secret is missing, and goes on by itself when it appears."""
    cluster = new_cluster()
    everything = cluster.manifests(replicas=1).split("---\n")
    secret = next(part for part in everything if "kind: Secret" in part)
    cluster.kubectl.apply("---\n".join(part for part in everything if part is not secret))
    said = wait_until(
        lambda: cluster.condition("controller", cluster.name, "Reconciled"), within=30, what="a condition"
    )
    assert said["status"] == "False"
    assert "keys" in said["message"]
    cluster.kubectl.apply(secret)
    cluster.wait_idle(1)
    assert cluster.condition("controller", cluster.name, "Reconciled")["status"] == "True"


def test_missing_controller(new_cluster: Callable[[], SlurmCluster]) -> None:
    """A NodeSet without its Controller says so, and goes on by itself when it appears."""
    cluster = new_cluster()
    everything = cluster.manifests(replicas=1).split("---\n")
    controller = next(part for part in everything if "kind: Controller" in part)
    cluster.kubectl.apply("---\n".join(part for part in everything if part is not controller))
    said = wait_until(
        lambda: cluster.condition("nodeset", "cpu", "Reconciled"), within=30, what="a condition"
    )
    assert said["status"] == "False"
    assert cluster.name in said["message"]
    assert not cluster.workers()
    cluster.kubectl.apply(controller)
    cluster.wait_idle(1)


def test_malformed_quantity_hurts_only_its_own_nodeset(cluster: SlurmCluster) -> None:
    """A pod template that the API server refuses: a condition with its words, and the neighbour goes on.

    The webhook refuses it; such an object is stored where nobody asked the webhook.
    """
    bad = _nodeset(cluster, cpu_limit="not-a-quantity")
    with pytest.raises(AssertionError, match=r"spec\.slurmd\.resources\.limits\.cpu"):
        cluster.kubectl.apply(bad)
    cluster.apply_unchecked(bad)
    said = wait_until(
        lambda: cluster.condition("nodeset", "bad", "Reconciled"), within=30, what="a condition"
    )
    assert said["status"] == "False"
    assert "quantit" in said["message"]
    cluster.scale(3)
    cluster.wait_idle(3)
    cluster.kubectl.apply(_nodeset(cluster, cpu_limit="1"))
    cluster.wait_idle(4)


def test_unknown_enum_value_is_refused(cluster: SlurmCluster) -> None:
    """The API server refuses it and names the member."""
    with pytest.raises(AssertionError, match="scalingMode"):
        cluster.kubectl.apply(_nodeset(cluster, cpu_limit="1").replace("StatefulSet", "Sideways"))


def _nodeset(cluster: SlurmCluster, *, cpu_limit: str) -> str:
    return f"""
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {{name: bad, namespace: {cluster.name}}}
spec:
  controllerRef: {{name: {cluster.name}}}
  scalingMode: StatefulSet
  oversubscribeNode: true
  slurmd:
    image: "coil.local/slurmd:lab"
    resources: {{limits: {{cpu: "{cpu_limit}"}}}}
  logfile: {{image: "coil.local/tools:lab"}}
  # sinfo lists only nodes of partitions.
  partition: {{enabled: true}}
"""
