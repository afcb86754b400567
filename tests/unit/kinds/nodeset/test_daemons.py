"""One worker on each node that should have one (spec: nodeset 15; field cases DMN-03 to DMN-06)."""

from collections import Counter
from itertools import repeat
from typing import Any

import msgspec
import pytest

from coil.api import keys
from coil.api.nodeset import NodeSet
from coil.kinds.nodeset.actions import Action, CreatePod, DeletePod, Drain, Resume, Undrain
from coil.kinds.nodeset.daemons import plan_daemons
from coil.kinds.nodeset.departures import DAEMON_PAUSE
from coil.kinds.nodeset.drain import Cause
from coil.kinds.nodeset.eligibility import placement
from coil.kinds.nodeset.plan import make_plan
from coil.kinds.nodeset.scaling import Scaling
from coil.kinds.nodeset.snapshot import Snapshot
from coil.kinds.nodeset.times import text
from coil.kube.views import NodeView, PodSpecView, PodView
from tests.support.nodeset_model import Operator
from tests.support.nodeset_moves import step_all
from tests.support.nodeset_world import DAEMONS, World
from tests.support.workers import NOW, OLD_REVISION, nodeset, pinned_to, pod, record, snapshot

DAEMON = nodeset(scalingMode="DaemonSet")


def node(name: str, *taints: dict[str, str], override: str = "", pool: str = "gpu") -> NodeView:
    annotations = {keys.ANNOTATION_HOSTNAME_OVERRIDE: override} if override else {}
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": {"pool": pool}, "annotations": annotations},
            "spec": {"taints": list(taints)},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        },
        NodeView,
    )


def daemon(ordinal: int, on: str, hostname: str = "", **facts: Any) -> PodView:
    """A worker on a node; the ordinal only tells pods apart."""
    name = hostname or on
    view = pod(ordinal, mode="DaemonSet", node=on, labels={keys.LABEL_POD_HOSTNAME: name}, **facts)
    return msgspec.structs.replace(view, spec=PodSpecView(node_name=on, hostname=name))


def seen(pods: list[PodView], nodes: list[NodeView], *, of: NodeSet = DAEMON, **members: Any) -> Snapshot:
    where = placement({"nodeSelector": {"pool": "gpu"}})
    records = members.pop("records", [record("other")])
    return snapshot(pods, records, hosts=nodes, of=of, nodes=tuple(nodes), placement=where, **members)


def plan(pods: list[PodView], nodes: list[NodeView]) -> Scaling:
    return plan_daemons(seen(pods, nodes))


def test_a_worker_for_each_matching_node() -> None:
    scaling = plan([daemon(0, "kn-1")], [node("kn-1"), node("kn-2.example.com"), node("kn-3", pool="cpu")])
    assert [(action.node, action.hostname) for action in scaling.create] == [("kn-2.example.com", "kn-2")]
    assert (scaling.desired, scaling.missing, scaling.vacant) == (2, 1, 1)


def test_a_node_that_no_longer_matches_loses_its_worker() -> None:
    scaling = plan([daemon(0, "kn-1")], [node("kn-1", pool="cpu")])
    assert scaling.condemned == {"uid-gpu-0": Cause.SCALE_IN}
    assert scaling.desired == 0


def test_an_idle_worker_whose_node_leaves_the_pool_is_drained_and_deleted_once() -> None:
    """Field case DMN-04: ten passes in which all goes well."""
    world = World(3, 1, "rev-0", DAEMONS)
    operator = Operator(world)

    def passes() -> list[Action]:
        done: list[Action] = []
        for _ in range(10):
            step_all(world)
            world.clock += 20
            operator.see_all()
            operator.poll()
            done += operator.run_pass(repeat("ok")).actions
        return done

    passes()
    world.hosts["kn-1"].pool = "cpu"
    kinds = Counter(type(action) for action in passes())
    assert (kinds[Drain], kinds[DeletePod]) == (1, 1)
    assert not {CreatePod, Undrain, Resume} & kinds.keys()
    assert {pod.node for pod in world.pods.values()} == {"kn-0", "kn-2"}


def test_a_worker_stays_on_a_node_that_takes_no_new_one() -> None:
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    scaling = plan([daemon(0, "kn-1")], [node("kn-1", taint)])
    assert (scaling.condemned, scaling.desired) == ({}, 0)


def test_a_worker_on_a_lost_node_stays() -> None:
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    assert plan([daemon(0, "kn-1")], [node("kn-1", taint)]).condemned == {}


def test_a_worker_of_a_node_that_is_gone_is_left_to_kubernetes() -> None:
    assert plan([daemon(0, "kn-9")], [node("kn-1")]).condemned == {}


@pytest.mark.parametrize(("machine", "goes"), [("kn-9", True), ("kn-1", False)])
def test_a_worker_that_waits_for_a_node_that_is_gone_goes(machine: str, *, goes: bool) -> None:
    """No garbage collector of Kubernetes takes it: it was never bound to the node."""
    waiting = msgspec.structs.replace(
        daemon(0, "", machine, phase="Pending"),
        spec=PodSpecView(hostname=machine, affinity=pinned_to(machine)),
    )
    made = make_plan(seen([waiting], [node("kn-1")]), NOW)
    assert [action.name for action in made.actions if isinstance(action, DeletePod)] == ["gpu-0"] * goes


def test_a_terminating_pod_holds_its_node() -> None:
    assert plan([daemon(0, "kn-1", terminating=True)], [node("kn-1")]).create == ()
    ended = daemon(0, "kn-1", terminating=True, phase="Failed")
    assert len(plan([ended], [node("kn-1")]).create) == 1


def test_an_unscheduled_pod_counts_for_the_node_it_is_bound_for() -> None:
    requirement = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["kn-1"]}]}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [requirement]}}
    spec = msgspec.convert({"hostname": "kn-1", "affinity": {"nodeAffinity": terms}}, PodSpecView)
    pending = msgspec.structs.replace(daemon(0, "kn-1", phase="Pending"), spec=spec)
    assert plan([pending], [node("kn-1")]).create == ()


def test_a_wrong_host_name_is_replaced_after_draining() -> None:
    scaling = plan([daemon(0, "kn-1")], [node("kn-1", override="gpu-017")])
    assert scaling.condemned == {"uid-gpu-0": Cause.REPLACE}
    made = make_plan(
        seen([daemon(0, "kn-1")], [node("kn-1", override="gpu-017")], records=[record("kn-1")]), NOW
    )
    kinds = {type(action).__name__ for action in made.actions}
    assert "Drain" in kinds
    assert "DeletePod" not in kinds
    assert [notice.reason for notice in made.notices] == ["HostnameMismatch"]


@pytest.mark.parametrize("name", ["GPU_17", "a.b", "x" * 70, "node-1-"])
def test_illegal_host_names_are_refused_and_hurt_no_other_node(name: str) -> None:
    scaling = plan([], [node("kn-1", override=name), node("kn-2")])
    assert [action.node for action in scaling.create] == ["kn-2"]
    assert len(scaling.refusals) == 1
    assert "kn-1" in scaling.refusals[0]


def test_equal_host_names_are_refused() -> None:
    scaling = plan([], [node("kn-1.a"), node("kn-1.b"), node("kn-2", override="kn-1")])
    assert [action.node for action in scaling.create] == ["kn-1.a"]
    assert len(scaling.refusals) == 2
    assert plan([daemon(0, "kn-1")], [node("kn-1"), node("kn-1.b")]).create == ()


def test_of_two_pods_on_a_node_the_ready_and_oldest_stays() -> None:
    spare = daemon(1, "kn-1", phase="Pending", waiting="ContainerCreating", created=text(NOW))
    assert plan([daemon(0, "kn-1"), spare], [node("kn-1")]).condemned == {"uid-gpu-1": Cause.REPLACE}
    twin = daemon(1, "kn-1", created=text(NOW))
    assert plan([daemon(0, "kn-1"), twin], [node("kn-1")]).condemned == {}


def test_nobody_is_judged_while_no_pod_can_be_built() -> None:
    mark = {keys.ANNOTATION_POD_CORDON: "true", keys.ANNOTATION_POD_CORDON_CAUSE: "scale-in"}
    pods = [daemon(0, "kn-1"), daemon(1, "kn-2", annotations=mark)]
    blind = msgspec.structs.replace(seen(pods, [node("kn-1", pool="cpu")]), placement=None)
    scaling = plan_daemons(blind)
    assert scaling.create == ()
    assert scaling.condemned == {"uid-gpu-1": Cause.SCALE_IN}


def test_an_ended_pod_is_replaced_but_not_at_once() -> None:
    young = daemon(0, "kn-1", phase="Failed", created=text(NOW - 10))
    made = make_plan(seen([young], [node("kn-1")]), NOW)
    assert not [action for action in made.actions if type(action).__name__ == "DeletePod"]
    assert made.requeue_after <= DAEMON_PAUSE - 10
    old = daemon(0, "kn-1", phase="Failed")
    made = make_plan(seen([old], [node("kn-1")]), NOW)
    assert [type(action).__name__ for action in made.actions] == ["DeletePod"]
    assert [notice.reason for notice in made.notices] == ["FailedDaemonPod"]


def test_workers_of_the_other_mode_leave_once_all_nodes_have_one() -> None:
    old = pod(7)
    assert plan([old], [node("kn-1")]).condemned == {}
    scaling = plan([old, daemon(0, "kn-1")], [node("kn-1")])
    assert scaling.condemned == {"uid-gpu-7": Cause.SCALING_MODE}


def test_an_empty_place_uses_up_max_unavailable() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
    of = nodeset(scalingMode="DaemonSet", updateStrategy=strategy)
    nodes = [node("kn-1"), node("kn-2"), node("kn-3")]
    going = daemon(2, "kn-3", terminating=True)
    old = [daemon(0, "kn-1", revision=OLD_REVISION), daemon(1, "kn-2", revision=OLD_REVISION)]
    records = [record("kn-1"), record("kn-2")]
    blocked = make_plan(seen([*old, going], nodes, of=of, records=records), NOW)
    assert "Drain" not in {type(action).__name__ for action in blocked.actions}
    free = make_plan(seen([*old, daemon(2, "kn-3")], nodes, of=of, records=[*records, record("kn-3")]), NOW)
    drains = [action for action in free.actions if type(action).__name__ == "Drain"]
    assert len(drains) == 1
