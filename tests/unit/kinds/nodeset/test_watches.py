"""Which changes concern a NodeSet (spec: nodeset 8.1; 30, Q5)."""

from typing import Any

import msgspec
import pytest

from coil.kinds.nodeset.watches import node_matters, observe_pod
from coil.kube.expectations import Expectations
from coil.kube.store import Change, ChangeKind
from coil.kube.views import NodeView, PodView
from coil.support.objects import ObjectKey
from tests.support.workers import pod

KEY = ObjectKey("slurm", "gpu")
POD = ObjectKey("slurm", "gpu-0")


def node(ready: str = "True", *, heartbeat: str = "", **members: Any) -> NodeView:
    conditions = [
        {"type": "Ready", "status": ready, "reason": "Kubelet", "lastHeartbeatTime": heartbeat},
        {"type": "BadCPU", "status": "False", "reason": "Fine", "message": heartbeat},
    ]
    wanted = {"metadata": {"name": "kn-1"}, "status": {"conditions": conditions}, **members}
    return msgspec.convert(wanted, NodeView)


def modified(old: NodeView, new: NodeView) -> Change[NodeView]:
    return Change(ChangeKind.MODIFIED, old, new)


def test_heartbeats_do_not_matter() -> None:
    beat = modified(node(heartbeat="1"), node(heartbeat="2"))
    assert not node_matters(beat, ())
    assert node_matters(beat, ("BadCPU",))


@pytest.mark.parametrize(
    "new",
    [
        node("False"),
        node(spec={"unschedulable": True}),
        node(spec={"taints": [{"key": "own", "effect": "NoSchedule"}]}),
        node(metadata={"name": "kn-1", "labels": {"pool": "gpu"}}),
        node(metadata={"name": "kn-1", "annotations": {"a": "b"}}),
    ],
)
def test_cordon_taints_labels_annotations_and_readiness_matter(new: NodeView) -> None:
    assert node_matters(modified(node(), new), ())


def test_nodes_that_come_and_go_matter() -> None:
    assert node_matters(Change(ChangeKind.ADDED, None, node()), ())
    assert node_matters(Change(ChangeKind.DELETED, node(), None), ())


def expectations() -> Expectations:
    found = Expectations(lambda: 0.0)
    found.expect_deletions(KEY, [POD])
    return found


@pytest.mark.parametrize(
    "change",
    [
        Change(ChangeKind.DELETED, pod(0), None),
        Change(ChangeKind.MODIFIED, pod(0), pod(0, terminating=True)),
        Change(ChangeKind.ADDED, None, pod(0, terminating=True)),
    ],
)
def test_a_pod_that_goes_or_begins_to_is_a_deletion_seen(change: Change[PodView]) -> None:
    waiting = expectations()
    observe_pod(waiting, KEY, change)
    assert waiting.satisfied(KEY)


def test_another_change_is_no_deletion() -> None:
    waiting = expectations()
    observe_pod(waiting, KEY, Change(ChangeKind.MODIFIED, pod(0), pod(0, ready=False)))
    assert not waiting.satisfied(KEY)


def test_a_new_pod_is_a_creation_seen() -> None:
    waiting = Expectations(lambda: 0.0)
    waiting.expect_creations(KEY, 1)
    observe_pod(waiting, KEY, Change(ChangeKind.ADDED, None, pod(0)))
    assert waiting.satisfied(KEY)
