"""The operator and the webhook are away (I5); `make soak-outage` lets them be away for ten minutes."""

import json
import os
import secrets
import time
from collections.abc import Iterator

import pytest

from tests.support.ha_cluster import HaCluster
from tests.support.job_stream import JobStream
from tests.support.kubectl import Kubectl, wait_until
from tests.support.operator import DEPLOYMENT, NAMESPACE, Operator

WEBHOOK = f"{DEPLOYMENT}-webhook"

OUTAGE_S = float(os.environ.get("COIL_OUTAGE_S", "10"))
STEADY_S = 60

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.timeout(300 + OUTAGE_S)]


# As `webhook.podsBinding` registers it, for the namespace of the test.
BINDINGS = """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: NAME}
webhooks:
  - name: podsbinding-v1.kb.io
    admissionReviewVersions: [v1]
    clientConfig: CLIENT
    failurePolicy: Ignore
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods/binding]}]
    sideEffects: NoneOnDryRun
    timeoutSeconds: 10
"""


@pytest.fixture
def cluster(kubectl: Kubectl) -> Iterator[HaCluster]:
    """A cluster whose slurmctld has no backup."""
    with HaCluster(kubectl, f"e2e-{secrets.token_hex(3)}", backups=0).running(workers=2) as made:
        yield made


@pytest.fixture
def bindings(cluster: HaCluster) -> Iterator[None]:
    """The webhook is asked about each binding of a pod to a node in the namespace of the cluster."""
    checks = cluster.kubectl.get("validatingwebhookconfiguration", WEBHOOK)["webhooks"]
    client = checks[0]["clientConfig"]
    client["service"]["path"] = "/mutate--v1-binding"
    registration = BINDINGS.replace("NAME", cluster.name).replace("CLIENT", json.dumps(client))
    cluster.kubectl.apply(registration)
    yield
    cluster.kubectl.run("delete", "mutatingwebhookconfiguration", cluster.name)


@pytest.fixture
def scaled(kubectl: Kubectl) -> Iterator[dict[str, int]]:
    """The deployments of coil with their replicas, which they have again afterwards."""
    found = kubectl.get("deployments", "--namespace", NAMESPACE) or []
    ours = {each["metadata"]["name"]: each["spec"]["replicas"] for each in found}
    yield {name: replicas for name, replicas in ours.items() if name.startswith(DEPLOYMENT)}
    for name, replicas in ours.items():
        scale(kubectl, name, replicas)
    Operator(kubectl).wait_ready(ours[DEPLOYMENT])


@pytest.mark.usefixtures("bindings")
def test_jobs_run_on_and_nothing_is_rolled(
    cluster: HaCluster, kubectl: Kubectl, scaled: dict[str, int]
) -> None:
    """Meanwhile slurmctld's pod is deleted and comes back, though nobody answers for its binding.

    Changes that the webhook would check are refused meanwhile. Afterwards all is steady within a minute.
    """
    assert WEBHOOK in scaled
    change = ("label", "nodeset", "cpu", "tried=yes", "--namespace", cluster.name)
    before = uids(cluster)
    for name in scaled:
        scale(kubectl, name, 0)
    wait_until(lambda: not pods_of_coil(kubectl), within=60, what="no operator and no webhook is left")
    away = time.time()
    stream = JobStream(cluster)
    stream.start()
    stream.wait_accepted(away)
    slurmctld = f"{cluster.name}-controller-0"
    deleted = time.time()
    cluster.delete_pod(slurmctld)
    with pytest.raises(AssertionError, match="failed calling webhook"):
        kubectl.run(*change)
    stream.wait_accepted(away + OUTAGE_S, within=OUTAGE_S + 90)

    back = time.time()
    for name, replicas in scaled.items():
        scale(kubectl, name, replicas)
    wait_until(lambda: kubectl.succeeds(*change), within=STEADY_S, what="the webhook is back")
    cluster.scale(3)
    wait_until(lambda: "cpu-2" in cluster.idle(), within=STEADY_S, what="the operator acts")
    steady = time.time() - back
    assert steady < STEADY_S
    fates = stream.stop()
    missed = fates.longest_gap(deleted)
    print(f"without operator for {back - away:.0f} s, no job accepted for {missed:.1f} s at most")
    print(f"steady {steady:.1f} s after; {len(fates.accepted)} jobs, {len(fates.refused)} refused")
    assert (fates.lost, fates.repeated) == ([], [])
    after = uids(cluster)
    assert {name: uid for name, uid in before.items() if after.get(name) != uid}.keys() == {slurmctld}


def pods_of_coil(kubectl: Kubectl) -> list[str]:
    """Names of the pods of operator and webhook."""
    pods = kubectl.get("pods", "--namespace", NAMESPACE) or []
    return [name for pod in pods if (name := pod["metadata"]["name"]).startswith(DEPLOYMENT)]


def uids(cluster: HaCluster) -> dict[str, str]:
    """All pods of the cluster."""
    pods = cluster.kubectl.get("pods", "--namespace", cluster.name) or []
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


def scale(kubectl: Kubectl, deployment: str, replicas: int) -> None:
    """Set a number of replicas, without waiting."""
    kubectl.run("scale", "deployment", deployment, f"--replicas={replicas}", "--namespace", NAMESPACE)
