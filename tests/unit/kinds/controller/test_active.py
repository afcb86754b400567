"""Claims about the label that the client Service follows (spec: control-plane 5.6, 21 Q6)."""

import pytest

from coil.api import keys
from coil.kinds.controller.active import LabelChange, choose, label_changes
from coil.kube.views import PodView
from coil.support.objects import ObjectMeta


def pod(ordinal: int, active: str | None = None) -> PodView:
    labels = {} if active is None else {keys.LABEL_ACTIVE: active}
    name = f"alba-controller-{ordinal}"
    return PodView(metadata=ObjectMeta(name=name, namespace="ns", uid=f"uid-{ordinal}", labels=labels))


@pytest.mark.parametrize("responding", [None, [], [False], [True], [False, True]])
def test_a_single_slurmctld_is_always_the_active_one(responding: list[bool] | None) -> None:
    assert choose("alba", [pod(0)], 1, responding) == "alba-controller-0"


@pytest.mark.parametrize(
    ("responding", "chosen"),
    [([True, False], 0), ([False, True], 1), ([True, True], 0), ([False, False, True], 2)],
)
def test_with_backups_the_first_that_responds_is_active(responding: list[bool], chosen: int) -> None:
    assert choose("alba", [pod(0, "true"), pod(1)], 2, responding) == f"alba-controller-{chosen}"


@pytest.mark.parametrize("responding", [None, [], [False, False]])
def test_without_an_answer_labels_stay_and_an_unlabelled_cluster_starts_with_pod_0(
    responding: list[bool] | None,
) -> None:
    assert choose("alba", [pod(0), pod(1, "true")], 2, responding) is None
    assert choose("alba", [pod(0), pod(1)], 2, responding) == "alba-controller-0"


def test_the_label_moves_by_giving_before_taking() -> None:
    assert label_changes([pod(0, "true"), pod(1), pod(2)], "alba-controller-1") == (
        LabelChange(pod="alba-controller-1", uid="uid-1", active=True),
        LabelChange(pod="alba-controller-0", uid="uid-0", active=False),
    )


def test_nothing_is_patched_when_the_labels_are_right() -> None:
    assert label_changes([pod(0), pod(1, "true")], "alba-controller-1") == ()
    assert label_changes([pod(0), pod(1)], None) == ()


def test_a_label_with_another_value_is_put_right() -> None:
    assert label_changes([pod(0, "false"), pod(1, "no")], "alba-controller-0") == (
        LabelChange(pod="alba-controller-0", uid="uid-0", active=True),
        LabelChange(pod="alba-controller-1", uid="uid-1", active=False),
    )
