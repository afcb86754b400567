"""A configuration that slurmctld would refuse does not reach a running cluster (invariant I11)."""

import base64
import json
import secrets
import time
from typing import Any

import pytest

from coil.kinds.controller.live import CLOCKS_S
from tests.e2e.test_live_configuration import busy
from tests.support.kubectl import wait_until
from tests.support.live_config import KIND, change, runs, setting, wait_live
from tests.support.slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]
__all__ = ["busy"]


def told(cluster: SlurmCluster, status: str, words: str, *, kind: str = "ConfigurationRejected") -> str:
    """Wait until the condition has that status and says these words; its message."""

    def there() -> str:
        found = cluster.condition(KIND, cluster.name, kind)
        return found["message"] if found.get("status") == status and words in found["message"] else ""

    return wait_until(there, within=60, what=f"{kind} {status}: {words}", every=0.2)


def patch_files(cluster: SlurmCluster, files: dict[str, str | None]) -> None:
    """Change files of the ConfigMap that the Controller refers to."""
    cluster.kubectl.run(
        "patch", "configmap", "files", "--namespace", cluster.name,
        "--type=merge", "--patch", json.dumps({"data": files}),
    )  # fmt: skip


def partition(cluster: SlurmCluster, config: str) -> None:
    """Change the partition line of the NodeSet."""
    cluster.kubectl.run(
        "patch", "nodeset.slinky.slurm.net", "cpu", "--namespace", cluster.name,
        "--type=merge", "--patch", json.dumps({"spec": {"partition": {"enabled": True, "config": config}}}),
    )  # fmt: skip


def live_text(cluster: SlurmCluster) -> str:
    """slurm.conf that the running pods mount."""
    return cluster.kubectl.get("configmap", f"{cluster.name}-config", "--namespace", cluster.name)["data"][
        "slurm.conf"
    ]


def left_behind(cluster: SlurmCluster) -> list[Any]:
    """Pods in which something is tried."""
    selector = "app.kubernetes.io/name=slurmctld-rehearsal"
    return cluster.kubectl.get("pods", "--namespace", cluster.name, "--selector", selector) or []


def test_what_slurmctld_refuses_is_told_and_leaves_the_cluster_as_it_is(
    busy: tuple[SlurmCluster, int],
) -> None:
    """Broken extraConf, partition line and referenced file, one after the other, each mended again."""
    cluster, job = busy
    before, good, started = runs(cluster), live_text(cluster), cluster.job(job)["StartTime"]
    usual = "Default=YES MaxTime=UNLIMITED"
    attempts = [
        (
            lambda: change(cluster, {"extraConf": "MaxJobCoont=5"}),
            "unrecognized key: MaxJobCoont",
            "MaxJobCoont=5)",
            lambda: change(cluster, {"extraConf": ""}),
        ),
        (
            lambda: partition(cluster, "Default=YES MaxTime=forever"),
            'Bad value "forever" for MaxTime',
            f"PartitionName=cpu Nodes=cpu {usual.replace('UNLIMITED', 'forever')})",
            lambda: partition(cluster, usual),
        ),
        (
            lambda: (
                change(cluster, {"extraConf": "TopologyPlugin=topology/tree"}),
                patch_files(cluster, {"topology.conf": "SwichName=s1\n"}),
            ),
            "unrecognized key: SwichName",
            "(topology.conf line 1: SwichName=s1)",
            lambda: (change(cluster, {"extraConf": ""}), patch_files(cluster, {"topology.conf": None})),
        ),
    ]
    for spoil, words, line, mend in attempts:
        since = time.monotonic()
        spoil()
        message = told(cluster, "True", words)
        print(f"refused after {time.monotonic() - since:.1f} s: {message}")
        assert message.endswith(line)
        assert live_text(cluster) == good
        assert cluster.job(job)["JobState"] == "RUNNING"
        mend()
        told(cluster, "False", "may be applied")
    wait_until(lambda: not left_behind(cluster), within=30, what="no rehearsal pod left")
    assert runs(cluster) == before
    found = cluster.job(job)
    assert (found["JobState"], found["StartTime"], found["Restarts"]) == ("RUNNING", started, "0")


def test_a_missing_config_map_is_told_and_a_mended_configuration_goes_through_by_itself(
    busy: tuple[SlurmCluster, int],
) -> None:
    cluster, job = busy
    before = runs(cluster)
    # As when the ConfigMap is deleted later, or no webhook is there: admission would refuse it.
    cluster.kubectl.run("label", "namespace", cluster.name, "coil.local/unchecked=true")
    change(cluster, {"configFileRefs": [{"name": "files"}, {"name": "nowhere"}]})
    told(cluster, "False", 'ConfigMap "nowhere" not found', kind="Reconciled")
    assert runs(cluster) == before
    change(cluster, {"extraConf": "MaxJobCount=0x", "configFileRefs": [{"name": "files"}]})
    told(cluster, "True", "MaxJobCount value (0x) is not a valid number")
    cluster.kubectl.run(
        "delete", "pods", "--namespace", "slinky", "--selector", "app.kubernetes.io/name=slurm-operator"
    )
    change(cluster, {"extraConf": "MaxJobCount=4321"})
    wait_until(lambda: setting(cluster, "MaxJobCount") == "4321", within=90, what="the mended configuration")
    told(cluster, "False", "may be applied")
    wait_live(cluster)
    assert runs(cluster) == before
    assert cluster.job(job)["JobState"] == "RUNNING"


def test_without_a_place_to_try_it_nothing_is_applied_and_the_reason_is_told(
    busy: tuple[SlurmCluster, int],
) -> None:
    cluster, job = busy
    before = live_text(cluster)
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "full", "namespace": cluster.name},
        "spec": {"hard": {"pods": "1"}},
    }
    cluster.kubectl.apply(json.dumps(quota))

    def counted() -> bool:
        found = cluster.kubectl.get("resourcequota", "full", "--namespace", cluster.name)
        return bool(found.get("status", {}).get("used"))

    wait_until(counted, within=30, what="the quota counts")
    change(cluster, {"extraConf": "MaxJobCount=4322"})
    told(cluster, "Unknown", "exceeded quota: full")
    assert live_text(cluster) == before
    # Whoever knows better says so.
    cluster.kubectl.run(
        "annotate", KIND, cluster.name, "--namespace", cluster.name, "slinky.slurm.net/rehearsal=off"
    )
    wait_until(lambda: setting(cluster, "MaxJobCount") == "4322", within=30, what="applied untried")
    told(cluster, "False", "may be applied")
    assert cluster.job(job)["JobState"] == "RUNNING"


def events(cluster: SlurmCluster, reason: str) -> list[Any]:
    """Those of the cluster's namespace."""
    found = cluster.kubectl.get("events.events.k8s.io", "--namespace", cluster.name) or []
    return [event for event in found if event["reason"] == reason]


def test_what_only_slurmd_refuses_is_told_and_no_slurmd_ends_of_it(busy: tuple[SlurmCluster, int]) -> None:
    """No rehearsal can tell of gres.conf, which slurmctld does not read (docs/configuration.md)."""
    cluster, job = busy
    before = runs(cluster)
    change(cluster, {"extraConf": "GresTypes=gpu"})
    wait_until(lambda: setting(cluster, "GresTypes") == "gpu", within=60, what="slurmctld knows the type")
    wait_live(cluster)
    # Start times that differ by less count as the same moment: clocks of nodes differ.
    since = time.time()
    wait_until(lambda: time.time() > since + CLOCKS_S + 1, within=10, what="the next start is a later one")

    def slurmds_refuse() -> bool:
        logs = [
            cluster.kubectl.run("logs", pod, "--namespace", cluster.name, "--container", "slurmd")
            for pod in cluster.workers()
        ]
        words = ("unrecognized key: Nmae", "Resuming operation, reconfigure failed.")
        return all(word in log for log in logs for word in words)

    patch_files(cluster, {"gres.conf": "Nmae=gpu\n"})
    wait_until(slurmds_refuse, within=60, what="each slurmd says that it goes on with the one before")
    message = told(cluster, "False", "an earlier one stays on cpu-0, cpu-1", kind="ConfigurationLive")
    assert "on slurmctld and 0 of 2 nodes" in message
    assert "slurmd of cpu-0 says: _parse_next_key: Parsing error at unrecognized key: Nmae" in message
    assert len(events(cluster, "NodesDiffer")) == 1
    assert runs(cluster) == before
    assert cluster.job(job)["JobState"] == "RUNNING"
    patch_files(cluster, {"gres.conf": None})
    wait_live(cluster)
    assert runs(cluster) == before
    assert cluster.job(job)["JobState"] == "RUNNING"
    another_slurm_key(cluster)
    assert runs(cluster) == before
    assert cluster.job(job)["JobState"] == "RUNNING"


def another_slurm_key(cluster: SlurmCluster) -> None:
    """Replace it under the workers, with a change of the configuration, and put it back."""
    place = ("secret", "keys", "--namespace", cluster.name)
    former = cluster.kubectl.get(*place)["data"]["slurm.key"]

    def store(key: str) -> None:
        patch = json.dumps({"data": {"slurm.key": key}})
        cluster.kubectl.run("patch", *place, "--type=merge", "--patch", patch)

    store(base64.b64encode(secrets.token_bytes(64)).decode())
    told(cluster, "False", "was changed while workers run", kind="Reconciled")
    change(cluster, {"extraConf": "MaxJobCount=4323"})
    store(former)
    wait_until(lambda: setting(cluster, "MaxJobCount") == "4323", within=60, what="the former key is back")
