"""On which Kubernetes nodes a worker should run, as a DaemonSet decides it (spec: nodeset 15.1). Pure.

Taints that Kubernetes sets on a node whose kubelet is silent do not condemn the worker there: a lost node
cannot be drained, and it may come back with its jobs (spec: nodeset 30, Q13).
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from coil.kube.views import NodeView, TaintView
from coil.support.objects import JsonObject

LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class Verdict(msgspec.Struct, frozen=True):
    """Whether a worker should be made on a node, and whether one that is there may stay."""

    run: bool
    stay: bool


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a pod spec that bind a pod to nodes."""

    node_selector: Mapping[str, str] = {}
    required_terms: tuple[JsonObject, ...] | None = None
    """Any of them must hold; None binds nothing."""
    tolerations: tuple[JsonObject, ...] = ()


def placement(pod_spec: JsonObject) -> Placement:
    """Read them from the spec that all pods have in common."""
    node_affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = None if required is None else tuple(required.get("nodeSelectorTerms") or ())
    return Placement(
        node_selector=pod_spec.get("nodeSelector") or {},
        required_terms=terms,
        tolerations=tuple(pod_spec.get("tolerations") or ()),
    )


def judge(where: Placement, node: NodeView) -> Verdict:
    """Judge one node."""
    if not _matches(where, node):
        return Verdict(run=False, stay=False)
    taints = [t for t in node.spec.taints if t.effect in ("NoSchedule", "NoExecute")]
    untolerated = [taint for taint in taints if not _tolerated(taint, where.tolerations)]
    evicting = (t for t in untolerated if t.effect == "NoExecute" and t.key not in LOST)
    return Verdict(run=not untolerated, stay=not any(evicting))


def _matches(where: Placement, node: NodeView) -> bool:
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in where.node_selector.items()):
        return False
    return where.required_terms is None or any(_term(term, node) for term in where.required_terms)


def _term(term: JsonObject, node: NodeView) -> bool:
    """A term without requirements matches nothing."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    names = {"metadata.name": node.metadata.name}
    return all(_holds(part, node.metadata.labels) for part in expressions) and all(
        _holds(part, names) for part in fields
    )


def _holds(part: Mapping[str, Any], values: Mapping[str, str]) -> bool:
    check = _OPERATORS.get(part.get("operator", ""))
    return check is not None and check(values.get(part.get("key", "")), part.get("values") or ())


def _compare(value: str | None, wanted: Iterable[str]) -> int:
    """Sign of value minus bound; 0 when either is no integer."""
    try:
        left, (right,) = int(value or ""), map(int, wanted)
    except ValueError:
        return 0
    return (left > right) - (left < right)


def _tolerated(taint: TaintView, tolerations: Iterable[Mapping[str, Any]]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Mapping[str, Any], taint: TaintView) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.effect:
        return False
    key = toleration.get("key") or ""
    if key and key != taint.key:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(key) and (toleration.get("value") or "") == taint.value


_OPERATORS: Mapping[str, Callable[[str | None, Collection[str]], bool]] = {
    "In": lambda value, wanted: value is not None and value in wanted,
    "NotIn": lambda value, wanted: value is None or value not in wanted,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": lambda value, wanted: _compare(value, wanted) > 0,
    "Lt": lambda value, wanted: _compare(value, wanted) < 0,
}
