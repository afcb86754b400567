"""slurmctld, the operator and its leader die; jobs do not."""

import time
from pathlib import Path

import pytest

from tests.support.kubectl import Kubectl, wait_until
from tests.support.operator import Operator, writes
from tests.support.slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.timeout(400)]


def test_slurmctld_comes_back_and_the_job_completes(cluster: SlurmCluster) -> None:
    """Deleting the slurmctld pod: `squeue` answers from the new pod within 20 s."""
    job = cluster.submit("sleep 30")
    cluster.wait_job(job, "RUNNING")
    pod = f"{cluster.name}-controller-0"
    old = cluster.kubectl.get("pod", pod, "--namespace", cluster.name)["metadata"]["uid"]

    cluster.kubectl.run("delete", "pod", pod, "--namespace", cluster.name, "--wait=false")

    def answered_by_the_new_pod() -> bool:
        found = cluster.kubectl.get("pod", pod, "--namespace", cluster.name)
        return (
            bool(found)
            and found["metadata"]["uid"] != old
            and str(job) in cluster.try_slurm("squeue", "--noheader")
        )

    started = time.monotonic()
    wait_until(answered_by_the_new_pod, within=20, what="squeue answers again")
    print(f"squeue answered after {time.monotonic() - started:.1f} s")
    ended = cluster.wait_job(job, "COMPLETED", within=90)
    assert ended["ExitCode"] == "0:0"


def test_operator_killed_while_scaling(cluster: SlurmCluster, kubectl: Kubectl) -> None:
    """SIGKILL in the middle of 0 → 4: exactly four pods in the end, none twice, no job harmed."""
    operator = Operator(kubectl)
    job = cluster.submit("sleep 60", "--nodelist=cpu-0")
    cluster.wait_job(job, "RUNNING")
    cluster.scale(4)
    wait_until(lambda: len(cluster.workers()) >= 2, within=30, what="scaling begins", every=0.05)
    for pod in operator.pods():
        operator.kill(pod)
    cluster_size = 4
    wait_until(lambda: len(cluster.workers()) == cluster_size, within=60, what="four workers")
    wait_until(lambda: len(cluster.nodes()) == cluster_size, within=60, what="four Slurm nodes")
    assert set(cluster.workers()) == {f"cpu-{ordinal}" for ordinal in range(cluster_size)}
    ended = cluster.wait_job(job, "COMPLETED", within=120)
    assert ended["ExitCode"] == "0:0"


def test_the_other_replica_takes_over(kubectl: Kubectl) -> None:
    """The leader is killed without a chance to release its Lease: another leads within 20 s."""
    operator = Operator(kubectl)
    operator.scale(2)
    try:
        old = wait_until(operator.leader, within=30, what="a leader")
        leading = next(pod for pod in operator.pods() if old in operator.log(pod))
        operator.kill(leading)
        started = time.monotonic()
        wait_until(lambda: operator.leader() not in ("", old), within=20, what="another leader")
        print(f"taken over after {time.monotonic() - started:.1f} s")
    finally:
        operator.scale(1)


def test_an_unchanged_cluster_is_left_alone(cluster: SlurmCluster, audit_log: Path) -> None:
    """For 40 s, more than one pass of every kind, the operator writes nothing (I8)."""
    quiet_for = 40.0

    # A pod that turns ready is a change, and has consequences.
    ready = ["wait", "--for=condition=Ready", "pods", "--all", "--namespace", cluster.name]
    cluster.kubectl.run(*ready, "--timeout=90s", within=100)

    def quiet() -> bool:
        size = audit_log.stat().st_size
        time.sleep(8)  # what follows a start comes after seconds of silence, such as first conditions
        return not [each for each in writes(audit_log, size) if cluster.name in each]

    wait_until(quiet, within=90, what="the cluster to settle")
    size = audit_log.stat().st_size
    end = time.monotonic() + quiet_for
    while time.monotonic() < end:
        time.sleep(1)
    assert [each for each in writes(audit_log, size) if cluster.name in each] == []
