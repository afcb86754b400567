"""Deletion order (spec: nodeset 17)."""

import pytest

from coil.api import keys
from coil.kinds.nodeset import times
from coil.kinds.nodeset.order import deletion_cost, ordered
from coil.kube.views import PodView
from tests.support.workers import NOW, pod, workers

LATER, PAST = times.text(NOW + 3600), times.text(NOW - 3600)


def names(*pods: PodView) -> list[str]:
    return [worker.name for worker in ordered(workers(pods))]


def annotated(ordinal: int, **annotations: str) -> PodView:
    known = {
        "cost": keys.ANNOTATION_POD_DELETION_COST,
        "deadline": keys.ANNOTATION_POD_DEADLINE,
        "cordon": keys.ANNOTATION_POD_CORDON,
    }
    return pod(ordinal, annotations={known[name]: value for name, value in annotations.items()})


def test_unassigned_goes_before_assigned() -> None:
    assert names(pod(1), pod(0, phase="Pending", node="")) == ["gpu-0", "gpu-1"]


def test_phases_in_order() -> None:
    pods = [pod(0, phase="Running", ready=False), pod(1, phase="Unknown"), pod(2, phase="Pending")]
    assert names(*pods) == ["gpu-2", "gpu-1", "gpu-0"]


def test_not_ready_goes_before_ready() -> None:
    assert names(pod(1), pod(0, ready=False)) == ["gpu-0", "gpu-1"]


def test_lower_cost_goes_first() -> None:
    assert names(annotated(0, cost="10"), annotated(1), annotated(2, cost="-10")) == [
        "gpu-2",
        "gpu-1",
        "gpu-0",
    ]


def test_workers_without_work_go_first_then_by_deadline() -> None:
    pods = [
        annotated(3, deadline=LATER),
        annotated(2, deadline=times.text(NOW)),
        annotated(1, deadline=PAST),
        pod(0),
    ]
    assert names(*pods) == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]


def test_higher_ordinal_goes_first() -> None:
    assert names(pod(0), pod(2), pod(1)) == ["gpu-2", "gpu-1", "gpu-0"]


def test_later_ready_goes_first() -> None:
    young = pod(0, owner="b", ready_since=LATER)
    assert names(pod(0, owner="a"), young) == ["b-0", "a-0"]


def test_newer_goes_first_when_not_ready() -> None:
    young = pod(0, owner="b", ready=False, created=LATER)
    assert names(pod(0, owner="a", ready=False), young) == ["b-0", "a-0"]


def test_mixed_list_of_the_specification() -> None:
    now = times.text(NOW)
    pods = {
        "deletionCostNeg10": annotated(3, cost="-10"),
        "podCordoned": annotated(4, cordon="true"),
        "ordinal-1": pod(1),
        "ordinal-0": pod(0),
        "podCordonedAndDeadlineNow": annotated(5, cordon="true", deadline=now),
        "deadlineNow": annotated(6, deadline=now),
        "podCordonedAndDeadlineLater": annotated(7, cordon="true", deadline=LATER),
        "deadlineLater": annotated(8, deadline=LATER),
        "deletionCostPos1": annotated(9, cost="1"),
        "cordonedDeadlineCost100": annotated(10, cordon="true", deadline=LATER, cost="100"),
    }
    assert names(*reversed(pods.values())) == [item.metadata.name for item in pods.values()]


@pytest.mark.parametrize("text", ["", "+1", "01", "1.5", "2147483648", "x", "- 1"])
def test_malformed_cost_counts_as_zero(text: str) -> None:
    assert deletion_cost(workers([annotated(0, cost=text)])[0]) == 0


@pytest.mark.parametrize("text", ["1", "t", "T", "true", "True", "TRUE"])
def test_cordon_is_read_as_boolean_here(text: str) -> None:
    assert names(pod(1), annotated(0, cordon=text)) == ["gpu-0", "gpu-1"]
