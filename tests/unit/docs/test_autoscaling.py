"""The examples of docs/autoscaling.md keep what its text explains."""

from typing import Any

import pytest
import yaml

from docs._ext.pages.flags import state_families
from tests.support.autoscaling import EXAMPLES, first, turns
from tests.support.external_metrics import Rule

KEDA = yaml.safe_load((EXAMPLES / "keda.yaml").read_text())["spec"]
HPA = yaml.safe_load((EXAMPLES / "hpa.yaml").read_text())["spec"]
BEHAVIORS = [KEDA["advanced"]["horizontalPodAutoscalerConfig"]["behavior"], HPA["behavior"]]


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_no_node_that_a_job_needs_is_left_out_as_a_trifle(behavior: dict[str, Any]) -> None:
    assert behavior["scaleUp"]["tolerance"] == "0"
    assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 0


def test_no_answer_is_not_taken_for_no_jobs() -> None:
    (trigger,) = KEDA["triggers"]
    assert trigger["metadata"]["ignoreNullValues"] == "false"


def test_both_ways_ask_for_a_series_that_the_operator_has() -> None:
    served = {family.name for family in state_families()}
    rule = Rule.read(EXAMPLES / "prometheus-adapter-values.yaml")
    assert rule.series in served
    assert rule.series in KEDA["triggers"][0]["metadata"]["query"]
    assert rule.name == HPA["metrics"][0]["external"]["metric"]["name"]
    assert rule.expression("slurm", {"partition": "cpu"}) == (
        'max(coil_partition_nodes_wanted{namespace="slurm",partition="cpu"})'
    )


def test_what_counts_as_flapping() -> None:
    assert turns([(0, 0), (2, 4), (4, 4), (6, 0)]) == 1
    assert turns([(0, 0), (2, 4), (4, 2), (6, 3), (8, 0)]) == 3
    assert first([(0, 0), (2, 4)], 4) == 2
