"""Scale out, scale in: workers come at once, go when their jobs have ended, idle ones first."""

import time

import pytest

from tests.support.kubectl import wait_until
from tests.support.slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]


def test_a_job_outlives_the_scale_in_around_it(cluster: SlurmCluster) -> None:
    """2 → 4 → 1 → 0: the busy worker stays until its job has ended well, the idle ones go before."""
    cluster.scale(4)
    idle = cluster.wait_idle(4)
    busy = max(idle)
    job = cluster.submit("sleep 45", f"--nodelist={busy}")
    cluster.wait_job(job, "RUNNING")

    cluster.scale(1)
    wait_until(lambda: set(cluster.workers()) == {busy}, within=60, what=f"only {busy} is left")
    assert cluster.job(job)["JobState"] == "RUNNING"

    cluster.scale(0)
    ended = wait_until(lambda: _ended_before_pod_went(cluster, job, busy), within=120, what="the job to end")
    assert (ended["JobState"], ended["ExitCode"]) == ("COMPLETED", "0:0")
    wait_until(lambda: not cluster.workers(), within=90, what="the last worker to go")
    _waits_without_workers(cluster)


def _waits_without_workers(cluster: SlurmCluster) -> None:
    """Field case SCL-02: a NodeSet of no workers takes jobs, which start with the one that comes for them."""
    jobs = [cluster.submit("true", "--partition=cpu", *option) for option in ((), ("--exclusive",))]
    for job in jobs:
        assert cluster.job(job)["JobState"] == "PENDING"
    cluster.scale(1)
    for job in jobs:
        cluster.wait_job(job, "COMPLETED")


def _ended_before_pod_went(cluster: SlurmCluster, job: int, busy: str) -> dict[str, str]:
    """The job once it is over; while it is not, its worker pod must be there."""
    workers = cluster.workers()
    record = cluster.job(job)
    if record.get("JobState") in ("", None, "RUNNING", "COMPLETING"):
        assert busy in workers, f"{busy} went while job {job} was {record.get('JobState')}"
        return {}
    return record


def test_every_worker_runs_its_task(cluster: SlurmCluster) -> None:
    """A two-node job reaches both pods and names both."""
    names = cluster.slurm("srun", "--nodes=2", "--chdir=/tmp", "hostname").split()
    assert sorted(names) == sorted(cluster.workers())


def test_nothing_is_deleted_while_slurm_cannot_be_asked(cluster: SlurmCluster) -> None:
    """Without a RestApi scale-in waits, for idle workers too; with it the target is reached by itself.

    What an admin said of one of the workers is still said of its record.
    """
    cluster.drain("cpu-0", "bad DIMM")
    job = cluster.submit("sleep 20", "--nodelist=cpu-1")
    cluster.wait_job(job, "RUNNING")
    namespace = ("--namespace", cluster.name)
    cluster.kubectl.run("delete", "restapi", cluster.name, *namespace)
    cluster.scale(0)

    def told() -> bool:
        said = cluster.condition("nodeset", "cpu", "SlurmReachable")
        return (said["status"], said["reason"]) == ("False", "NoRestApi")

    wait_until(told, within=30, what="the condition says that there is no RestApi")

    def ended() -> dict[str, str]:
        pods = cluster.workers()
        assert len(pods) == 2, pods.keys()
        assert not [name for name, pod in pods.items() if "deletionTimestamp" in pod["metadata"]]
        record = cluster.job(job)
        return record if record.get("JobState") not in ("RUNNING", None) else {}

    record = wait_until(ended, within=60, what="the job ends")
    assert (record["JobState"], record["ExitCode"], record["Restarts"]) == ("COMPLETED", "0:0", "0")
    again = next(part for part in cluster.manifests(replicas=0).split("---\n") if "kind: RestApi" in part)
    cluster.kubectl.apply(again)
    back = time.monotonic()
    wait_until(lambda: not cluster.workers(), within=60, what="both workers to go")
    print(f"\n2 to 0 workers {time.monotonic() - back:.1f} s after the RestApi is back")
    assert cluster.drain_reason("cpu-0") == "bad DIMM"


def test_an_admins_drain_is_not_undone(cluster: SlurmCluster) -> None:
    """Scale in and out around a node drained by hand: state and reason stay (I3)."""
    cluster.drain("cpu-0", "bad DIMM")
    cluster.scale(3)
    cluster.wait_idle(2)
    cluster.scale(2)
    wait_until(lambda: len(cluster.workers()) == 2, within=60, what="two workers left")
    assert cluster.drain_reason("cpu-0") == "bad DIMM"
    cluster.scale(0)
    wait_until(lambda: not cluster.workers(), within=60, what="no worker left")
    cluster.scale(2)
    cluster.wait_idle(1)
    wait_until(
        lambda: cluster.nodes().get("cpu-0") == "drained", within=60, what="cpu-0 is back, and drained"
    )
    assert cluster.drain_reason("cpu-0") == "bad DIMM"
