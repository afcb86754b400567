"""A changed configuration reaches the running daemons; pods and jobs are not touched (field case CFG-19)."""

import json
import statistics
import time
from collections.abc import Callable

import pytest

from tests.support.kubectl import wait_until
from tests.support.live_config import Timing, change, figures, reconfigures, runs, timed_change, wait_live
from tests.support.slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

BUDGET_S = 8.0
"""With its rehearsal; 5 s without."""
CHANGES = 5


def on_worker(cluster: SlurmCluster, pod: str, file: str) -> str:
    """A file as slurmd of that pod got it from slurmctld; empty when it has none."""
    try:
        return cluster.kubectl.exec(cluster.name, pod, "slurmd", "cat", f"/run/slurm/conf/{file}", within=20)
    except AssertionError:
        return ""


def seconds_until(check: Callable[[], bool], since: float, what: str) -> float:
    """How long after `since` the check became true."""
    wait_until(check, within=30, what=what, every=0.1)
    return time.monotonic() - since


@pytest.fixture
def busy(cluster: SlurmCluster) -> tuple[SlurmCluster, int]:
    """A steady cluster with a running job."""
    job = cluster.submit("sleep 600")
    cluster.wait_job(job, "RUNNING")
    wait_live(cluster)
    return cluster, job


def test_extra_conf_is_live_within_seconds_again_and_again(busy: tuple[SlurmCluster, int]) -> None:
    """Median and worst of some changes, on slurmctld and on each slurmd, with a job running.

    20 changes, with more workers, with and without the rehearsal: `make bench-configuration`.
    """
    cluster, job = busy
    before, started, told = runs(cluster), cluster.job(job)["StartTime"], reconfigures(cluster)
    timings: list[Timing] = []
    for number in range(CHANGES):
        timings.append(timed_change(cluster, "MaxJobCount", 5000 + number))
        wait_live(cluster)
    controller, everywhere = (
        [getattr(each, side) for each in timings] for side in ("controller", "everywhere")
    )
    print(f"slurmctld: median, worst {figures(controller)}; every slurmd: {figures(everywhere)}")
    assert statistics.median(everywhere) < BUDGET_S
    assert reconfigures(cluster) - told == CHANGES
    assert runs(cluster) == before
    now = cluster.job(job)
    assert (now["JobState"], now["StartTime"], now["Restarts"]) == ("RUNNING", started, "0")


def test_a_new_nodeset_brings_its_partition_and_restarts_nothing(busy: tuple[SlurmCluster, int]) -> None:
    cluster, job = busy
    before = runs(cluster)
    manifest = {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "NodeSet",
        "metadata": {"name": "late", "namespace": cluster.name},
        "spec": {
            "controllerRef": {"name": cluster.name},
            "replicas": 0,
            "slurmd": {"image": "coil.local/slurmd:lab"},
            "logfile": {"image": "coil.local/tools:lab"},
            "partition": {"enabled": True, "config": "MaxTime=7"},
        },
    }
    since = time.monotonic()
    cluster.kubectl.apply(json.dumps(manifest))
    taken = seconds_until(
        lambda: "MaxTime=00:07:00" in cluster.try_slurm("scontrol", "show", "partition", "late"),
        since,
        "partition late",
    )
    print(f"partition after {taken:.1f} s")
    assert taken < BUDGET_S
    assert before.items() <= runs(cluster).items()
    assert cluster.job(job)["JobState"] == "RUNNING"


def test_content_of_a_referenced_config_map_reaches_the_slurmds(busy: tuple[SlurmCluster, int]) -> None:
    cluster, job = busy
    before = runs(cluster)
    since = time.monotonic()
    text = "CgroupPlugin=autodetect\nIgnoreSystemd=yes\nSignalChildrenProcesses=yes\n"
    cluster.kubectl.run(
        "patch", "configmap", "files", "--namespace", cluster.name,
        "--type=merge", "--patch", json.dumps({"data": {"cgroup.conf": text}}),
    )  # fmt: skip
    taken = seconds_until(
        lambda: all(on_worker(cluster, pod, "cgroup.conf") == text for pod in cluster.workers()),
        since,
        "cgroup.conf on each slurmd",
    )
    print(f"file after {taken:.1f} s")
    assert taken < BUDGET_S
    assert runs(cluster) == before
    assert cluster.job(job)["JobState"] == "RUNNING"


def test_a_restart_only_parameter_replaces_slurmctld_alone(busy: tuple[SlurmCluster, int]) -> None:
    cluster, job = busy
    pod = f"{cluster.name}-controller-0"
    workers = {name: found["metadata"]["uid"] for name, found in cluster.workers().items()}
    old = cluster.kubectl.get("pod", pod, "--namespace", cluster.name)["metadata"]["uid"]
    change(cluster, {"extraConf": "AuthAltTypes=auth/jwt,auth/slurm"})

    def replaced() -> bool:
        found = cluster.kubectl.get("pod", pod, "--namespace", cluster.name)
        return bool(found) and found["metadata"]["uid"] != old

    wait_until(replaced, within=30, what="another slurmctld pod")
    cluster.wait_job(job, "RUNNING", within=60)
    assert {name: found["metadata"]["uid"] for name, found in cluster.workers().items()} == workers
