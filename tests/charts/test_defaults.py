"""Every value of the reference has the documented name, type and default, but for those named here."""

import csv
import json
from typing import Any

import pytest
import yaml

from tests.support.charts import CHARTS, ROOT

TABLE = ROOT / "tests" / "data" / "helm-schema.tsv"
# Where the reference names its own images, or hides the global pull policy (spec: helm 11, no. 29 and 33).
OTHER_DEFAULTS = {
    "slurm": {"repository", "tag"},
    "slurm-operator": {"repository", "imagePullPolicy"},
}
CONTROL_PLANE = ("slurmctld", "slurmdbd", "slurmrestd")
# Values that only our charts have.
ADDED = {
    "slurm": {
        "nodesetDefaults.minReadySeconds",
        "nodesetDefaults.revisionHistoryLimit",
        "nodesetDefaults.volumeClaimTemplates",
        "nodesetDefaults.persistentVolumeClaimRetentionPolicy",
        "nodesetDefaults.dcgmJobMapping",
        "vendor.google.tcpxoImage",
        *(f"networkPolicy.{name}" for name in ("enabled", "operator", "restapiFrom", "metricsFrom")),
        *(f"networkPolicy.{name}" for name in ("loginFrom", "databaseTo", "outside")),
        *(f"networkPolicy.srunPorts.{name}" for name in ("first", "last")),
        *(f"networkPolicy.extra.{name}.ingress" for name in (*CONTROL_PLANE, "slurmd", "login")),
        *(f"networkPolicy.extra.{name}.egress" for name in CONTROL_PLANE),
    },
    "slurm-operator": {
        "operator.namespacedRoles",
        "operator.readDaemonLogs",
        "certManager.caBundle",
        *(f"monitoring.{name}.enabled" for name in ("serviceMonitor", "rules", "dashboards")),
        *(f"monitoring.{name}.annotations" for name in ("serviceMonitor", "rules", "dashboards")),
        *(f"monitoring.{name}.labels" for name in ("serviceMonitor", "rules")),
        "monitoring.serviceMonitor.interval",
        "monitoring.dashboards.labels.grafana_dashboard",
        *(
            f"networkPolicy.{name}"
            for name in ("enabled", "metricsFrom", "apiServer.peers", "apiServer.ports")
        ),
        *(f"networkPolicy.extra.operator.{name}" for name in ("ingress", "egress")),
        *(f"networkPolicy.extra.webhook.{name}" for name in ("ingress", "egress")),
    },
}
charts = pytest.mark.parametrize("chart", ["slurm", "slurm-operator"])


def table(chart: str) -> dict[str, Any]:
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return {row["path"]: json.loads(row["default"]) for row in rows if row["chart"] == chart}


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """The values by path, as the table writes paths."""
    if not isinstance(value, dict) or not value:
        return {path: value}
    found: dict[str, Any] = {}
    for key, member in value.items():
        shown = f'"{key}"' if "." in key else key
        found |= leaves(member, f"{path}.{shown}" if path else shown)
    return found


def ours(chart: str) -> dict[str, Any]:
    return leaves(yaml.safe_load((CHARTS / chart / "values.yaml").read_text()))


def test_table_is_read_whole() -> None:
    assert {chart: len(table(chart)) for chart in OTHER_DEFAULTS} == {"slurm": 190, "slurm-operator": 80}


@charts
def test_every_documented_value_is_there_and_no_other(chart: str) -> None:
    assert ours(chart).keys() == table(chart).keys() | ADDED[chart]


@charts
def test_defaults_are_the_documented_ones(chart: str) -> None:
    values = ours(chart)
    different = {path for path, default in table(chart).items() if values[path] != default}
    assert {path.rsplit(".", 1)[-1] for path in different} <= OTHER_DEFAULTS[chart]
