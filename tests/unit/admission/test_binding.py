"""Claims about the webhook on pods/binding (spec: control-plane 13.7)."""

import asyncio
from typing import Any

import pytest

from coil.admission import binding
from coil.admission.review import Answer, Request
from coil.kube.core import NODES, PODS
from coil.kube.errors import ApiError, Forbidden, NotFound, Timeout, Unavailable
from coil.kube.views import NodeView, PodView
from coil.support.objects import ObjectMeta

TOPOLOGY = "topology.slinky.slurm.net/spec"
GONE = NotFound(404, "NotFound", "not found")


def pod(application: str = "slurmd", **annotations: str) -> PodView:
    labels = {"app.kubernetes.io/name": application}
    return PodView(
        metadata=ObjectMeta(name="gpu-0", namespace="ns", labels=labels, annotations={**annotations})
    )


def node(topology: str | None = "block:b1") -> NodeView:
    annotations = {} if topology is None else {TOPOLOGY: topology}
    return NodeView(metadata=ObjectMeta(name="kn", annotations=annotations))


class Cluster:
    """A pod, a node, and what patching gives; errors are raised."""

    def __init__(self, pod: Any, node: Any, patched: Any = None) -> None:
        self._pod, self._node, self._patched = pod, node, patched
        self.calls: list[str] = []
        self.patches: list[Any] = []

    async def get(self, resource: Any, name: str, _namespace: str | None = None) -> Any:
        self.calls.append(f"get {resource.plural}/{name}")
        return _or_raise({PODS: self._pod, NODES: self._node}[resource])

    async def patch(self, resource: Any, name: str, body: Any, namespace: str) -> Any:
        self.calls.append(f"patch {resource.plural}/{namespace}/{name}")
        self.patches.append(body)
        return _or_raise(self._patched)


def _or_raise(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


def bind(cluster: Any, *, dry_run: bool = False, target: Any = None) -> Answer:
    body = {"target": {"kind": "Node", "name": "kn"} if target is None else target}
    request = Request(uid="u", operation="CREATE", name="gpu-0", namespace="ns", dry_run=dry_run, object=body)
    return asyncio.run(binding.answer(request, cluster))


def test_a_worker_gets_its_nodes_topology() -> None:
    cluster = Cluster(pod(), node())
    assert bind(cluster) == Answer()
    assert cluster.patches == [{"metadata": {"annotations": {TOPOLOGY: "block:b1"}}}]


def test_a_node_without_topology_gives_an_empty_one() -> None:
    cluster = Cluster(pod(), node(None))
    assert bind(cluster) == Answer()
    assert cluster.patches == [{"metadata": {"annotations": {TOPOLOGY: ""}}}]


def test_what_is_there_already_is_not_written_again() -> None:
    cluster = Cluster(pod(**{TOPOLOGY: "block:b1"}), node())
    assert bind(cluster) == Answer()
    assert cluster.patches == []


def test_other_pods_are_none_of_its_business() -> None:
    cluster = Cluster(pod("web"), node())
    assert bind(cluster) == Answer()
    assert cluster.calls == ["get pods/gpu-0"]


def test_a_dry_run_does_nothing() -> None:
    """Field case WHK-03."""
    cluster = Cluster(pod(), node())
    assert bind(cluster, dry_run=True) == Answer()
    assert cluster.calls == []


def test_a_pod_that_does_not_exist_is_refused() -> None:
    found = bind(Cluster(GONE, node()))
    assert (found.code, found.message) == (403, "not found")


@pytest.mark.parametrize("cluster", [Cluster(pod(), GONE), Cluster(pod(), node(), GONE)])
def test_a_node_or_pod_that_is_gone_by_now_does_not_matter(cluster: Cluster) -> None:
    assert bind(cluster) == Answer()


@pytest.mark.parametrize("error", [Forbidden(403, "Forbidden", "no"), Timeout(), Unavailable(message="down")])
@pytest.mark.parametrize("where", ["pod", "node", "patch"])
def test_no_failure_of_its_own_stops_a_pod(error: ApiError, where: str) -> None:
    """Invariant I5: the operator makes good what is missed here."""
    answers = {"pod": pod(), "node": node(), "patch": None, where: error}
    found = bind(Cluster(answers["pod"], answers["node"], answers["patch"]))
    assert found.allowed
    (text,) = found.warnings
    assert text.startswith("pod ns/gpu-0 did not get its node's topology: ")


@pytest.mark.parametrize("target", [{}, {"kind": "Node"}, {"kind": "Cloud", "name": "kn"}, {"name": 5}, "kn"])
def test_a_strange_target_is_left_to_the_api_server(target: Any) -> None:
    cluster = Cluster(pod(), node())
    assert bind(cluster, target=target) == Answer()
    assert cluster.patches == []
