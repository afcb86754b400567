"""Boards and alerts against a real Prometheus that scrapes a real slurmctld and the operator."""

import json
import urllib.parse
import urllib.request
from collections.abc import Callable

import pytest

from tests.support.kubectl import Kubectl, wait_until
from tests.support.monitored import create
from tests.support.queries import metrics, of_boards, of_rules
from tests.support.slurm_cluster import SlurmCluster

ON_REQUEST = {
    # The webhook's metrics are off unless asked for.
    "coil_certificate_expires_timestamp_seconds"
}
WELL = {
    # Nothing says No in a cluster that is well.
    'coil_condition{kind="NodeSet", status="False"}',
}


@pytest.fixture
def prometheus(new_cluster: Callable[[], SlurmCluster], kubectl: Kubectl) -> str:
    """URL of a Prometheus that scrapes a cluster of one worker and the operator."""
    return create(new_cluster(), kubectl, replicas=1)


@pytest.mark.timeout(300)
def test_every_query_of_every_board_and_alert_finds_data(prometheus: str) -> None:
    base = f"{prometheus}/api/v1/query"
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
