"""Every PromQL expression that the boards and the alerts hold."""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from dashboards.boards import BOARDS

MONITORING = Path(__file__).parents[2] / "charts/slurm-operator/monitoring"
_METRIC = re.compile(
    r"\b(?:slurm|coil|controller_runtime|workqueue|rest_client|leader_election|process)_[a-z_]+\b"
)


def of_boards() -> Iterator[str]:
    """The expressions of the boards' panels, every variable as wide as it goes."""
    for board in BOARDS:
        for panel in board.panels:
            for query in panel.queries:
                yield re.sub(r"\$[a-z]+", ".*", query.expr)


def of_rules() -> Iterator[str]:
    """The expressions of the alerts."""
    for group in yaml.safe_load((MONITORING / "rules.yaml").read_text())["groups"]:
        yield from (rule["expr"] for rule in group["rules"])


def metrics() -> set[str]:
    """Names of all series that boards or alerts ask for."""
    return {name for query in (*of_boards(), *of_rules()) for name in _METRIC.findall(query)}
