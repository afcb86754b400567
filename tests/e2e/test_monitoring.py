"""Boards and alerts against a real Prometheus that scrapes a real slurmctld and the operator."""

import json
import string
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from lab import cluster as lab
from lab import images
from tests.support.kubectl import Kubectl, wait_until
from tests.support.queries import metrics, of_boards, of_rules
from tests.support.slurm_cluster import SlurmCluster

PROMETHEUS = string.Template((Path(__file__).parents[1] / "data/e2e/prometheus.yaml").read_text())
ON_REQUEST = {
    # The webhook's metrics are off unless asked for.
    "coil_certificate_expires_timestamp_seconds"
}
WELL = {
    # Nothing says No in a cluster that is well.
    'coil_condition{kind="NodeSet", status="False"}',
}


@pytest.fixture
def watched(new_cluster: Callable[[], SlurmCluster], kubectl: Kubectl) -> SlurmCluster:
    """A cluster with metrics and its Prometheus."""
    images.build(["prometheus"])
    lab.load(images.IMAGES["prometheus"].reference)
    cluster = new_cluster()
    documents = list(yaml.safe_load_all(cluster.manifests(replicas=1)))
    for document in documents:
        if document["kind"] == "Controller":
            document["spec"]["metrics"] = {"enabled": True}
    kubectl.apply(yaml.safe_dump_all(documents))
    cluster.wait_idle(1)
    kubectl.apply(PROMETHEUS.substitute(name=cluster.name))
    kubectl.run(
        "wait",
        "pod/prometheus",
        "--namespace",
        cluster.name,
        "--for=condition=Ready",
        "--timeout=60s",
        within=70,
    )
    return cluster


@pytest.mark.timeout(300)
def test_every_query_of_every_board_and_alert_finds_data(watched: SlurmCluster, kubectl: Kubectl) -> None:
    pod = json.loads(kubectl.run("get", "pod", "prometheus", "--namespace", watched.name, "--output=json"))
    base = f"http://{pod['status']['podIP']}:9090/api/v1/query"
    asked = {*of_boards(), *metrics()} - WELL - ON_REQUEST
    missing = set(asked)

    def found_all() -> bool:
        missing.difference_update([query for query in missing if ask(base, query)])
        return not missing

    try:
        wait_until(found_all, within=60, what="data for every query")
    except AssertionError:
        pytest.fail(f"no data for {sorted(missing)}")
    for rule in of_rules():
        ask(base, rule)


def ask(base: str, query: str) -> list[object]:
    """The series that answer a query; a query that Prometheus cannot read is an error."""
    with urllib.request.urlopen(f"{base}?{urllib.parse.urlencode({'query': query})}", timeout=10) as answer:  # noqa: S310
        return json.load(answer)["data"]["result"]
