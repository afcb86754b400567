"""A holder of a token, who reads it from the Secret that a Token keeps, speaks with the REST service.

`COIL_ROTATIONS=10` replaces the key ten times, as the figures of docs/keys.md were made.
"""

import json
import os
import secrets
import statistics
import time

import pytest

from tests.support.kubectl import wait_until
from tests.support.slurm_cluster import SlurmCluster
from tests.support.token_holder import Holder, Stored, answers, rest_url

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

ROTATIONS = int(os.environ.get("COIL_ROTATIONS", "2"))
REFUSED_S = 2.0
"""The documented overlap is below; a busy machine may be slower."""

TOKEN = """
apiVersion: slinky.slurm.net/v1beta1
kind: Token
metadata: {{name: holder, namespace: {name}}}
spec:
  jwtKeyRef: {{name: keys, key: jwt.key}}
  username: slurm
  lifetime: 1h
"""


def replace_key(cluster: SlurmCluster) -> None:
    """Give the JWT key another value."""
    patch = json.dumps({"stringData": {"jwt.key": secrets.token_hex(32)}})
    cluster.kubectl.run("patch", "secret", "keys", "-n", cluster.name, "--type=merge", "--patch", patch)


def identities(cluster: SlurmCluster) -> dict[str, list[int]]:
    """Every pod of the cluster with how often its containers were started."""
    pods = cluster.kubectl.get("pods", "--namespace", cluster.name)
    return {
        pod["metadata"]["uid"]: [each["restartCount"] for each in pod["status"].get("containerStatuses", [])]
        for pod in pods
    }


def reachable_since(cluster: SlurmCluster) -> str:
    """Since when the operator gets answers from Slurm; empty while it does not."""
    told = cluster.condition("controller.slinky.slurm.net", cluster.name, "SlurmReachable")
    return told["lastTransitionTime"] if told.get("status") == "True" else ""


def test_a_replaced_key_refuses_holders_for_a_moment_and_restarts_nothing(cluster: SlurmCluster) -> None:
    """Field cases SEC-05 and SEC-07: pods, a running job and the operator's own client notice nothing."""
    cluster.kubectl.apply(TOKEN.format(name=cluster.name))
    job, url = cluster.submit("sleep 600"), rest_url(cluster)
    cluster.wait_job(job, "RUNNING")
    stored = Stored(cluster.kubectl, cluster.name, "holder-jwt-slurm")
    with stored.followed(), Holder(url, lambda: stored.text).asking() as holder:
        wait_until(lambda: any(answer.good for answer in holder.answers), within=30, what="a first answer")
        wait_until(lambda: reachable_since(cluster), within=30, what="the operator's client")
        before, since = identities(cluster), reachable_since(cluster)
        refused, taken = [], []
        for _ in range(ROTATIONS):
            old, began = stored.text, time.monotonic()
            replace_key(cluster)
            wait_until(lambda: stored.text != old, within=60, what="another token", every=0.05)  # noqa: B023
            wait_until(
                lambda: any(answer.good and answer.token != old for answer in holder.since(began)),  # noqa: B023
                within=60,
                what="the new token is taken",
                every=0.1,
            )
            assert not answers(url, old)
            good = next(answer for answer in holder.since(began) if answer.good and answer.token != old)
            taken.append(good.at - began)
            refused.append(holder.refused_s(began))
    for what, times in (("new key taken after", taken), ("holder refused for", refused)):
        print(f"{what}: median {statistics.median(times):.2f} s, worst {max(times):.2f} s of {len(times)}")
    assert max(refused) < REFUSED_S
    assert identities(cluster) == before
    assert reachable_since(cluster) == since
    now = cluster.job(job)
    assert (now["JobState"], now["Restarts"]) == ("RUNNING", "0")
