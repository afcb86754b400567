"""On which nodes a worker should run (spec: nodeset 15.1, 32; field case DMN-03)."""

from typing import Any

import msgspec
import pytest

from coil.kinds.nodeset.eligibility import judge, placement
from coil.kube.views import NodeView

WORKER = {"key": "nodeset.slinky.slurm.net/worker", "operator": "Equal", "effect": "NoExecute"}


def node(*taints: dict[str, str], name: str = "kn-1", **labels: str) -> NodeView:
    return msgspec.convert(
        {"metadata": {"name": name, "labels": labels}, "spec": {"taints": list(taints)}}, NodeView
    )


def verdict(where: NodeView, **spec: Any) -> tuple[bool, bool]:
    found = judge(placement({"tolerations": [WORKER], **spec}), where)
    return found.run, found.stay


def required(*expressions: dict[str, Any], fields: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    term = {"matchExpressions": list(expressions), "matchFields": fields or []}
    terms = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    ("taint", "wanted"),
    [
        ({"key": "nodeset.slinky.slurm.net/worker", "effect": "NoExecute"}, (True, True)),
        ({"key": "nodeset.slinky.slurm.net/worker", "value": "x", "effect": "NoExecute"}, (False, False)),
        ({"key": "nodeset.slinky.slurm.net/worker", "effect": "NoSchedule"}, (False, True)),
        ({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, (False, True)),
        ({"key": "soft", "effect": "PreferNoSchedule"}, (True, True)),
        ({"key": "maint", "value": "x", "effect": "NoExecute"}, (False, False)),
    ],
)
def test_taints(taint: dict[str, str], wanted: tuple[bool, bool]) -> None:
    assert verdict(node(taint)) == wanted


@pytest.mark.parametrize("key", ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"])
def test_a_lost_node_gets_no_new_worker_and_keeps_the_old_one(key: str) -> None:
    """Differs from the reference, which condemns the worker (spec: nodeset 30, Q13)."""
    assert verdict(node({"key": key, "effect": "NoExecute"}, {"key": key, "effect": "NoSchedule"})) == (
        False,
        True,
    )


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "own", "operator": "Exists"}, True),
        ({"key": "own", "value": "x"}, True),
        ({"key": "own", "operator": "Equal", "value": "y"}, False),
        ({"key": "own", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"value": "x"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], *, tolerated: bool) -> None:
    taint = {"key": "own", "value": "x", "effect": "NoSchedule"}
    assert verdict(node(taint), tolerations=[toleration])[0] is tolerated


def test_selector_affinity_and_taint_together() -> None:
    affinity = required({"key": "zone", "operator": "In", "values": ["a"]})
    nodes = [
        node(name="a-1", zone="a", pool="gpu"),
        node({"key": "maint", "effect": "NoSchedule"}, name="a-2", zone="a", pool="gpu"),
        node(name="a-3", zone="a", pool="cpu"),
        node(name="b-1", zone="b", pool="gpu"),
    ]
    runs = [verdict(where, nodeSelector={"pool": "gpu"}, affinity=affinity)[0] for where in nodes]
    assert runs == [True, False, False, False]


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ({"key": "n", "operator": "In", "values": ["5", "6"]}, True),
        ({"key": "n", "operator": "NotIn", "values": ["5"]}, False),
        ({"key": "absent", "operator": "NotIn", "values": ["5"]}, True),
        ({"key": "n", "operator": "Exists"}, True),
        ({"key": "absent", "operator": "Exists"}, False),
        ({"key": "absent", "operator": "DoesNotExist"}, True),
        ({"key": "n", "operator": "Gt", "values": ["4"]}, True),
        ({"key": "n", "operator": "Gt", "values": ["5"]}, False),
        ({"key": "n", "operator": "Lt", "values": ["6"]}, True),
        ({"key": "text", "operator": "Gt", "values": ["4"]}, False),
        ({"key": "n", "operator": "Gt", "values": []}, False),
        ({"key": "n", "operator": "OfTheFuture"}, False),
    ],
)
def test_operators(expression: dict[str, Any], *, wanted: bool) -> None:
    assert verdict(node(n="5", text="x"), affinity=required(expression))[0] is wanted


def test_fields_name_the_node() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": ["kn-1"]}]
    assert verdict(node(), affinity=required(fields=fields)) == (True, True)
    assert verdict(node(name="kn-2"), affinity=required(fields=fields)) == (False, False)


def test_a_term_without_requirements_matches_nothing() -> None:
    assert verdict(node(), affinity=required()) == (False, False)
