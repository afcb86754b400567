"""The chart brings alerts, boards and a scrape of the operator, when asked to."""

import json
import re

import pytest
from prometheus_client import REGISTRY

from coil.admission import metrics as _webhook  # noqa: F401 -- registers the webhook's series
from coil.service import manager as _manager  # noqa: F401 -- registers the manager's
from dashboards.__main__ import text
from dashboards.boards import BOARDS
from docs._ext.pages.flags import state_families
from tests.support.charts import RenderError, by_name, template
from tests.support.queries import MONITORING, metrics

ON = [f"--set=monitoring.{name}.enabled=true" for name in ("rules", "dashboards", "serviceMonitor")]


def test_nothing_is_made_unless_asked_for() -> None:
    """A cluster without the Prometheus operator knows neither kind."""
    kinds = {document["kind"] for document in template("slurm-operator")}
    assert kinds.isdisjoint({"PrometheusRule", "ServiceMonitor", "ConfigMap"})


def test_the_boards_of_the_chart_are_the_ones_of_the_source() -> None:
    """Written by `make dashboards`."""
    for board in BOARDS:
        assert (MONITORING / f"boards/{board.uid}.json").read_text() == text(board)


def test_alerts_boards_and_scrape_are_rendered_whole() -> None:
    documents = template("slurm-operator", *ON, "--set=monitoring.rules.labels.release=prometheus")
    rule, *_ = (document for document in documents if document["kind"] == "PrometheusRule")
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    assert [group["name"] for group in rule["spec"]["groups"]] == ["slurm", "coil"]
    assert "{{ $labels.instance }}" in rule["spec"]["groups"][0]["rules"][0]["annotations"]["description"]
    boards = [document for document in documents if document["kind"] == "ConfigMap"]
    assert {json.loads(next(iter(board["data"].values())))["uid"] for board in boards} == {
        b.uid for b in BOARDS
    }
    assert all(board["metadata"]["labels"]["grafana_dashboard"] == "1" for board in boards)
    monitor = next(document for document in documents if document["kind"] == "ServiceMonitor")
    service = by_name(documents)["Service/slurm-operator"]
    selector = monitor["spec"]["selector"]["matchLabels"].items()
    assert selector <= service["metadata"]["labels"].items()
    assert "metrics" in {port["name"] for port in service["spec"]["ports"]}


def test_a_scrape_of_nothing_is_refused() -> None:
    with pytest.raises(RenderError, match=r"needs operator\.metricsPort"):
        template("slurm-operator", *ON, "--set=operator.metricsPort=0")


def test_the_operator_has_every_series_that_a_board_or_an_alert_asks_for() -> None:
    families = (*REGISTRY.collect(), *state_families())
    served = {sample for family in families for sample in _names(family.name, family.type)}
    asked = {name for name in metrics() if not re.match(r"slurm_|process_", name)}
    assert asked <= served


def _names(name: str, kind: str) -> set[str]:
    return {name, f"{name}_total"} if kind == "counter" else {name, f"{name}_bucket"}
