"""The alerts, judged by Prometheus' own tool: each fires where it must and is silent where it must be."""

import os
import re
from pathlib import Path

import pytest
import yaml

from tests.support.container import Container

ROOT = Path(__file__).parents[2]
RULES = ROOT / "charts/slurm-operator/monitoring/rules.yaml"
CASES = ROOT / "tests/data/alerts/rules_test.yaml"


@pytest.mark.timeout(300)  # the first run builds the image
@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and mounts need root")
def test_every_alert_fires_and_is_silent_as_its_cases_say() -> None:
    container = Container("prometheus", "test", "rules", "/rules_test.yaml", entrypoint=["promtool"])
    container.file("/rules.yaml", RULES.read_bytes())
    container.file("/rules_test.yaml", CASES.read_bytes())
    with container:
        assert container.wait(60) == 0, container.output()


def test_no_alert_is_without_a_case_and_a_page() -> None:
    """An alert that no case can make fire may never fire; one without a page wakes people for nothing."""
    names = {
        rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
    }
    assert names == set(re.findall(r'alertname(?:="|: )(\w+)', CASES.read_text()))
    assert names == set(re.findall(r"^## (\w+)$", (ROOT / "docs/alerts.md").read_text(), re.MULTILINE))
