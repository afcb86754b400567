"""Jobs reach a real database through a real slurmdbd, and trouble with it harms no job."""

import secrets
import time
from collections.abc import Callable, Iterator

import pytest

from tests.support.accounting import AccountedCluster, refer
from tests.support.kubectl import Kubectl, wait_until
from tests.support.live_config import KIND, change, reconfigures
from tests.support.slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def cluster(kubectl: Kubectl) -> Iterator[AccountedCluster]:
    """A cluster with one worker that was there before its database; each test leaves it as it was."""
    made = AccountedCluster(kubectl, f"e2e-{secrets.token_hex(3)}")
    try:
        made.create(replicas=1)
        made.wait_complaint("mariadb")
        started = time.monotonic()
        made.create_database()
        made.wait_available()
        print(f"slurmdbd has its database after {time.monotonic() - started:.1f} s")
        made.wait_idle(1)
        print(f"the worker is idle after {time.monotonic() - started:.1f} s")
        yield made
    finally:
        made.delete()


def test_a_completed_job_is_in_sacct(cluster: AccountedCluster) -> None:
    """Although slurmctld first started without slurmdbd, and slurmdbd without its database."""
    job = cluster.submit("true")
    started = time.monotonic()
    cluster.wait_recorded(job, within=30)
    print(f"in sacct {time.monotonic() - started:.1f} s after it was submitted")
    assert cluster.condition("accounting", cluster.name, "Reconciled")["status"] == "True"
    assert cluster.condition("accounting", cluster.name, "DatabaseExclusive")["status"] == "True"


def test_jobs_run_without_the_database_and_are_in_it_afterwards(cluster: AccountedCluster) -> None:
    """The database is gone while a job is submitted, runs and ends."""
    cluster.wait_recorded(cluster.submit("true"))
    cluster.scale_database(0)
    job = cluster.submit("true")
    cluster.wait_job(job, "COMPLETED", within=30)
    cluster.scale_database(1)
    started = time.monotonic()
    cluster.wait_recorded(job)
    print(f"in sacct {time.monotonic() - started:.1f} s after the database was back")


def test_a_changed_password_reaches_slurmdbd(cluster: AccountedCluster) -> None:
    """One restart of slurmdbd with it (DBD-13); while the database has another one, the condition says so."""
    before = cluster.slurmdbd_uid()
    started = time.monotonic()
    cluster.set_password("b\"C'\\d#é")
    wait_until(lambda: cluster.slurmdbd_uid() not in ("", before), within=30, what="slurmdbd is made anew")
    print(f"slurmdbd was made anew after {time.monotonic() - started:.1f} s")
    cluster.wait_complaint("Access denied for user 'slurm'")
    job = cluster.submit("true")
    cluster.wait_job(job, "COMPLETED", within=30)
    after = cluster.slurmdbd_uid()

    cluster.scale_database(0)
    cluster.scale_database(1)
    cluster.wait_available()
    cluster.wait_recorded(job)
    assert cluster.slurmdbd_uid() == after, "slurmdbd restarted more than once"


def test_a_qos_that_slurmdbd_does_not_know_is_told_and_goes_through_when_it_is_made(
    cluster: AccountedCluster,
) -> None:
    """The rehearsal knows no slurmdbd: slurmctld itself refuses, and is not asked for ever."""

    def live(status: str, words: str) -> bool:
        told = cluster.condition(KIND, cluster.name, "ConfigurationLive")
        return told.get("status") == status and words in told["message"]

    def partitions() -> str:
        return cluster.try_slurm("scontrol", "--oneliner", "show", "partitions")

    change(cluster, {"extraConf": "PartitionName=q Nodes=ALL QOS=high"})
    wait_until(lambda: live("False", "is refused by slurmctld"), within=30, what="the refusal is told")
    assert live("False", "invalid qos (high)")
    asked = reconfigures(cluster)
    cluster.wait_recorded(cluster.submit("true"))
    cluster.slurm("sacctmgr", "--immediate", "add", "qos", "high")
    assert reconfigures(cluster) == asked
    cluster.slurm("scontrol", "reconfigure")
    wait_until(lambda: live("True", "is live on slurmctld"), within=45, what="slurmctld takes it")
    assert "PartitionName=q " in partitions()
    change(cluster, {"extraConf": ""})
    wait_until(lambda: "PartitionName=q " not in partitions(), within=30, what="the partition is gone")


def test_another_cluster_uses_it_as_an_external_one(
    cluster: AccountedCluster, new_cluster: Callable[[], SlurmCluster]
) -> None:
    """An external Accounting has no children; its slurmctld registers where it says (DBD-14, DBD-16)."""
    other = new_cluster()
    key = cluster.kubectl.get("secret", "keys", "--namespace", cluster.name)["data"]
    manifests = refer(other.manifests(replicas=0), "outside").split("---\n")
    other.kubectl.apply("---\n".join(part for part in manifests if "kind: Secret" not in part))
    other.kubectl.apply(_keys(other.name, key) + "---" + _outside(other.name, cluster.name))
    wait_until(lambda: "(primary)" in other.try_slurm("scontrol", "ping"), within=60, what="slurmctld runs")
    clusters = cluster.slurm("sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=cluster")
    assert {f"{other.name}_{other.name}", f"{cluster.name}_{cluster.name}"} <= set(clusters.split())
    assert other.condition("accounting", "outside", "Reconciled")["status"] == "True"
    assert other.condition("accounting", "outside", "Available")["reason"] == "External"
    workloads = other.kubectl.get("statefulsets,services", "--namespace", other.name)
    assert not [each for each in workloads if "accounting" in each["metadata"]["name"]]


def test_accounting_is_added_to_a_running_cluster(kubectl: Kubectl) -> None:
    """Before slurmdbd is there nothing changes; then slurmctld registers and records (field case DBD-05)."""
    cluster = AccountedCluster(kubectl, f"e2e-{secrets.token_hex(3)}")
    try:
        kubectl.apply(SlurmCluster(kubectl, cluster.name).manifests(replicas=1))
        cluster.wait_idle(1)
        assert "openapi/slurmctld" in slurmrestd(cluster)
        slurmctld = cluster.slurmctld_uid()
        cluster.add_accounting()
        cluster.wait_complaint("mariadb")
        assert (
            cluster.condition("controller", cluster.name, "Reconciled")["reason"] == "AccountingUnavailable"
        )
        assert cluster.slurmctld_uid() == slurmctld
        cluster.create_database()
        wait_until(lambda: cluster.slurmctld_uid() not in ("", slurmctld), within=60, what="a new slurmctld")
        cluster.wait_idle(1)
        cluster.wait_recorded(cluster.submit("true"), within=30)
        assert cluster.condition("controller", cluster.name, "Reconciled")["status"] == "True"
        assert "openapi/slurmctld" not in slurmrestd(cluster)
    finally:
        cluster.delete()


def slurmrestd(cluster: AccountedCluster) -> list[str]:
    """The arguments of slurmrestd, once its pod is ready (field case DBD-07)."""
    where = (f"{cluster.name}-restapi", "--namespace", cluster.name)
    cluster.kubectl.run("rollout", "status", "deployment", *where, "--timeout=60s", within=70)
    deployment = cluster.kubectl.get("deployment", *where)
    return deployment["spec"]["template"]["spec"]["containers"][0]["args"]


def _keys(namespace: str, data: dict[str, str]) -> str:
    return f"""
apiVersion: v1
kind: Secret
metadata: {{name: keys, namespace: {namespace}}}
data: {{slurm.key: {data["slurm.key"]}, jwt.key: {data["jwt.key"]}}}
"""


def _outside(namespace: str, cluster: str) -> str:
    return f"""
apiVersion: slinky.slurm.net/v1beta1
kind: Accounting
metadata: {{name: outside, namespace: {namespace}}}
spec:
  external: true
  externalConfig: {{host: {cluster}-accounting.{cluster}, port: 6819}}
"""
