"""Pods that have one Slurm name (invariants I1, I3): the record may be the other one's."""

from typing import Any

import msgspec
import pytest

from coil.api import keys
from coil.kinds.nodeset.actions import Resume, SetComment, SetFeatures, SetTopology, Undrain
from coil.kinds.nodeset.cordon import cordon_marks
from coil.kinds.nodeset.drain import Cause
from coil.kinds.nodeset.joining import join
from coil.kinds.nodeset.plan import make_plan
from coil.kinds.nodeset.report import shared_names
from coil.kinds.nodeset.snapshot import Snapshot
from coil.kube.views import PodSpecView, PodView
from tests.support.workers import NOW, host, nodeset, pod, record, replace, snapshot, view

OURS = "slurm-operator: Pod (slurm/gpu-0) is pending termination for scale-in"
DRAINED = record("k1", "IDLE+DRAIN", OURS)
STALE = record("k1", "DOWN", "slurm-operator: gpu fault", topology="old")
WRITES = Undrain | Resume | SetComment | SetTopology | SetFeatures


def named(name: str, ordinal: int, **facts: Any) -> PodView:
    made = pod(ordinal, **facts)
    return replace(made, spec=PodSpecView(node_name=made.spec.node_name, hostname=name))


def writes(seen: Snapshot) -> list[object]:
    return [action for action in make_plan(seen, NOW).actions if isinstance(action, WRITES)]


def elsewhere(seen: Snapshot) -> Snapshot:
    """Another NodeSet's pod has the name of each."""
    return replace(seen, workers=tuple(replace(worker, shared=True) for worker in seen.workers))


@pytest.mark.parametrize("state", [DRAINED, STALE])
def test_a_pod_of_another_nodeset_with_that_name_keeps_the_record_as_it_is(state: Any) -> None:
    annotations = {keys.ANNOTATION_TOPOLOGY: "rack-1", keys.ANNOTATION_FEATURES: "a"}
    seen = snapshot([named("k1", 0)], [state], hosts=[host("kn-0", annotations=annotations)])
    assert writes(seen)
    assert writes(elsewhere(seen)) == []


@pytest.mark.parametrize(
    "facts", [{"phase": "Pending", "ready": False}, {"ready": False}, {"phase": "Unknown", "ready": False}]
)
def test_a_pod_that_is_not_up_does_not_speak_for_the_record(facts: dict[str, Any]) -> None:
    for state in (DRAINED, STALE):
        assert writes(snapshot([named("k1", 0, **facts)], [state])) == []


def test_a_pod_of_the_new_mode_does_not_undrain_the_one_of_the_old_mode() -> None:
    mark = {keys.ANNOTATION_POD_CORDON: "true", keys.ANNOTATION_POD_CORDON_CAUSE: "scale-in"}
    old, new = named("k1", 1, annotations=mark), named("k1", 0)
    seen = snapshot([old, new], [DRAINED], of=nodeset(replicas=1))
    assert [worker.shared for worker in seen.workers] == [True, True]
    assert writes(seen) == []


def test_an_ended_pod_shares_nothing() -> None:
    seen = snapshot([named("k1", 1, phase="Failed"), named("k1", 0)], [DRAINED], of=nodeset(replicas=1))
    assert not seen.workers[1].shared
    assert Undrain(nodes=("k1",)) in writes(seen)


def test_pods_without_a_name_yet_share_nothing() -> None:
    unnamed = [replace(pod(n, mode="DaemonSet"), spec=PodSpecView()) for n in range(2)]
    assert not any(worker.shared for worker in snapshot(unnamed, []).workers)


def test_join_asks_about_pods_of_others() -> None:
    (worker,) = join([named("k1", 0)], host, view([DRAINED]), lambda seen: seen.spec.hostname == "k1")
    assert worker.shared
    assert worker.record == DRAINED


def test_a_shared_name_is_told() -> None:
    seen = elsewhere(snapshot([named(f"k{n}", n) for n in range(5)], []))
    (problem,) = shared_names(seen)
    assert problem.reason == "SlurmNameShared"
    assert "k0, k1, k2 and 2 more" in problem.message
    assert shared_names(snapshot([pod(0)], [])) == []


def test_a_plan_never_returns_a_node_whose_pod_leaves() -> None:
    """The last guard, should a rule be wrong: a pass that fails costs no job."""
    pair = snapshot([named("k1", 1), named("k1", 0)], [DRAINED], of=nodeset(replicas=1))
    blind = replace(pair, workers=tuple(replace(worker, shared=False) for worker in pair.workers))
    with pytest.raises(AssertionError, match="k1"):
        make_plan(blind, NOW)


@pytest.mark.parametrize("state", ["IDLE+DRAIN", "MIXED+DRAIN"])
def test_nothing_is_undrained_while_the_machine_is_unknown(state: str) -> None:
    seen = snapshot([pod(0)], [record("gpu-0", state, OURS)], of=nodeset(replicas=1))
    unknown = replace(seen, workers=tuple(replace(worker, host=None) for worker in seen.workers))
    assert writes(seen)
    assert not [w for w in writes(unknown) if isinstance(w, Undrain | Resume)]


@pytest.mark.parametrize("known", [True, False])
def test_the_mark_of_a_cordoned_machine_stays_while_it_cannot_be_looked_at(known: bool) -> None:
    mark = {keys.ANNOTATION_POD_CORDON: "true", keys.ANNOTATION_POD_CORDON_CAUSE: Cause.NODE.value}
    (worker,) = snapshot([pod(0, annotations=mark, ready=not known)], [record("gpu-0")]).workers
    assert cordon_marks(worker if known else msgspec.structs.replace(worker, host=None), None) == {}
