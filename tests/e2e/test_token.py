"""A holder of a token, who reads it from the Secret that a Token keeps, speaks with the REST service."""

import base64
import json
import secrets
import time
import urllib.request

import pytest

from tests.support.kubectl import wait_until
from tests.support.slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

TOKEN = """
apiVersion: slinky.slurm.net/v1beta1
kind: Token
metadata: {{name: holder, namespace: {name}}}
spec:
  jwtKeyRef: {{name: keys, key: jwt.key}}
  username: slurm
  lifetime: 1h
"""


def stored(cluster: SlurmCluster) -> str:
    """The token in the Secret; empty while there is none."""
    found = cluster.kubectl.get("secret", "holder-jwt-slurm", "--namespace", cluster.name) or {}
    return base64.b64decode(found.get("data", {}).get("SLURM_JWT", "")).decode()


def answers(cluster: SlurmCluster, token: str) -> bool:
    """Whether a request with the token gets the cluster's nodes."""
    service = cluster.kubectl.get("service", f"{cluster.name}-restapi", "--namespace", cluster.name)
    url = f"http://{service['spec']['clusterIP']}:6820/slurm/v0.0.44/nodes/"
    request = urllib.request.Request(url, headers={"X-SLURM-USER-TOKEN": token})
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:  # noqa: S310 -- a URL of our own
            return bool(json.loads(reply.read())["nodes"])
    except OSError:
        return False


def test_a_rotated_key_interrupts_token_holders_for_seconds(cluster: SlurmCluster) -> None:
    """The new token is there at once; until slurmctld has the new key its holders are refused."""
    cluster.kubectl.apply(TOKEN.format(name=cluster.name))
    old = wait_until(lambda: stored(cluster), within=10, what="a token", every=0.1)
    wait_until(lambda: answers(cluster, old), within=20, what="the REST service takes the token")
    job = cluster.submit("sleep 120")
    cluster.wait_job(job, "RUNNING")
    patch = json.dumps({"stringData": {"jwt.key": secrets.token_hex(32)}})
    cluster.kubectl.run("patch", "secret", "keys", "-n", cluster.name, "--type=merge", "--patch", patch)
    began = last_good = time.monotonic()
    new = _another(cluster, old)
    print(f"a new token {time.monotonic() - began:.1f} s after the key")
    longest = 0.0
    while not (taken := answers(cluster, new)) or answers(cluster, old):
        now = time.monotonic()
        last_good = now if taken else last_good
        longest = max(longest, now - last_good)
        assert longest < 120, "no token is taken any more"
        time.sleep(0.1)
    longest = max(longest, time.monotonic() - last_good)
    print(f"only new tokens are taken after {time.monotonic() - began:.1f} s; refused for {longest:.1f} s")
    assert cluster.wait_job(job, "RUNNING", within=60)["JobState"] == "RUNNING"


def _another(cluster: SlurmCluster, old: str) -> str:
    """The token that takes the place of the old one."""

    def changed() -> str:
        text = stored(cluster)
        return "" if text == old else text

    return wait_until(changed, within=10, what="a new token", every=0.1)
