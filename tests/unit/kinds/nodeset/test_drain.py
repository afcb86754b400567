"""Causes and reasons of drains (spec: nodeset 13, 32)."""

import msgspec
import pytest

from coil.api import keys
from coil.kinds.nodeset.drain import Cause, drain_reason, own_cause, sanitise
from coil.kube.views import NodeView, PodView
from tests.support.workers import host, pod, workers


def reason(view: PodView, cause: Cause | None, *hosts: NodeView, propagated: tuple[str, ...] = ()) -> str:
    return drain_reason(cause, workers([view], hosts=hosts)[0], propagated).own


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\r\tb", "a  b"),
        ("\x1b[31mred\x1b[0m", "[31mred[0m"),
        ("é" * 300, "é" * 256),
        ("  gpu fault \n", "gpu fault"),
        ("x" * 255 + " y", "x" * 255),
        ("\x00\x07", ""),
    ],
)
def test_sanitise(text: str, clean: str) -> None:
    assert sanitise(text) == clean


def test_reason_of_a_node_cordon_names_node_and_pod() -> None:
    text = reason(pod(0), Cause.NODE, host("kn-0", cordoned=True))
    assert text == "slurm-operator: Node (kn-0) was cordoned, Pod (slurm/gpu-0) must be cordoned"


@pytest.mark.parametrize(
    ("given", "told"),
    [("gpu fault", "gpu fault"), ("", "unknown"), ("a\nb", "a b"), ("\x07", "unknown"), ("a : b", "a: b")],
)
def test_reason_of_a_node_cordon_from_its_annotation(given: str, told: str) -> None:
    node = host("kn-0", cordoned=True, annotations={keys.ANNOTATION_NODE_CORDON_REASON: given})
    assert reason(pod(0), Cause.NODE, node) == f"slurm-operator: {told}"


def test_reason_of_a_node_cordon_from_propagated_conditions() -> None:
    conditions = [
        {"type": "BadCPU", "status": "True", "reason": "BadCPU", "message": "CPU 17"},
        {"type": "Fine", "status": "False", "reason": "Fine", "message": "no"},
        {"type": "Gpu", "status": "True", "reason": "GpuCountMismatch", "message": "7 of 8"},
    ]
    node = msgspec.convert({"metadata": {"name": "kn-0"}, "status": {"conditions": conditions}}, NodeView)
    text = reason(pod(0), Cause.NODE, node, propagated=("BadCPU", "Fine", "Gpu", "Absent"))
    assert text == "slurm-operator: (BadCPU: CPU 17); (GpuCountMismatch: 7 of 8)"


def test_reason_of_a_users_cordon() -> None:
    assert reason(pod(0), None) == "slurm-operator: Pod (slurm/gpu-0) was cordoned"


@pytest.mark.parametrize("cause", [Cause.SCALE_IN, Cause.UPDATE, Cause.SCALING_MODE])
def test_reason_of_any_condemnation(cause: Cause) -> None:
    assert reason(pod(0), cause) == "slurm-operator: Pod (slurm/gpu-0) is pending termination for scale-in"


@pytest.mark.parametrize(
    ("annotations", "cause"),
    [
        ({keys.ANNOTATION_POD_CORDON: "true", keys.ANNOTATION_POD_CORDON_CAUSE: "node"}, Cause.NODE),
        ({keys.ANNOTATION_POD_CORDON: "true"}, None),
        ({keys.ANNOTATION_POD_CORDON: "TRUE", keys.ANNOTATION_POD_CORDON_CAUSE: "node"}, None),
        ({keys.ANNOTATION_POD_CORDON: "true", keys.ANNOTATION_POD_CORDON_CAUSE: "of-the-future"}, None),
        ({keys.ANNOTATION_POD_CORDON_CAUSE: "node"}, None),
    ],
)
def test_only_marked_cordons_are_ours(annotations: dict[str, str], cause: Cause | None) -> None:
    assert own_cause(workers([pod(0, annotations=annotations)])[0]) is cause
