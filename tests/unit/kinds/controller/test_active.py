"""Claims about the label that the client Service follows (docs: high-availability)."""

import pytest

from coil.api import keys
from coil.kinds.controller.active import WAITING_S, LabelChange, Role, active_pod, choose, label_changes
from coil.kube.views import PodView
from coil.support.objects import ObjectMeta

ACTIVE, STANDBY, SILENT = Role.ACTIVE, Role.STANDBY, Role.SILENT


def pod(ordinal: int, active: str | None = None) -> PodView:
    labels = {} if active is None else {keys.LABEL_ACTIVE: active}
    name = f"alba-controller-{ordinal}"
    return PodView(metadata=ObjectMeta(name=name, namespace="ns", uid=f"uid-{ordinal}", labels=labels))


def roles(*said: Role) -> dict[str, Role]:
    return {f"alba-controller-{ordinal}": role for ordinal, role in enumerate(said)}


@pytest.mark.parametrize("said", [(), (SILENT,), (ACTIVE,), (STANDBY,), (SILENT, ACTIVE)])
def test_a_single_slurmctld_is_always_the_active_one(said: tuple[Role, ...]) -> None:
    assert choose("alba", [pod(0)], 1, roles(*said), 0) == "alba-controller-0"


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        ((ACTIVE, STANDBY, STANDBY), 0),
        ((STANDBY, ACTIVE, STANDBY), 1),
        ((SILENT, STANDBY, ACTIVE), 2),
        ((SILENT, SILENT, ACTIVE), 2),
    ],
)
def test_with_backups_it_is_the_one_that_says_so(said: tuple[Role, ...], chosen: int) -> None:
    found = [pod(0, "true"), pod(1), pod(2)]
    assert choose("alba", found, 3, roles(*said), 0) == f"alba-controller-{chosen}"


def test_while_two_are_active_clients_stay_where_they_are() -> None:
    assert choose("alba", [pod(0), pod(1, "true")], 2, roles(ACTIVE, ACTIVE), 0) == "alba-controller-1"
    assert choose("alba", [pod(0), pod(1)], 2, roles(ACTIVE, ACTIVE), 0) == "alba-controller-0"


def test_a_slurmctld_that_is_back_in_a_moment_keeps_its_clients() -> None:
    found = [pod(0, "true"), pod(1)]
    assert choose("alba", found, 2, roles(SILENT, STANDBY), WAITING_S - 0.1) is None


def test_clients_wait_at_a_standby_that_will_take_over() -> None:
    found = [pod(0, "true"), pod(1), pod(2)]
    assert choose("alba", found, 3, roles(SILENT, STANDBY, STANDBY), WAITING_S) == "alba-controller-1"
    waiting = [pod(0), pod(1), pod(2, "true")]
    assert choose("alba", waiting, 3, roles(SILENT, STANDBY, STANDBY), WAITING_S) is None


@pytest.mark.parametrize("idle", [0, 1000])
@pytest.mark.parametrize("said", [(), (SILENT, SILENT)])
def test_without_an_answer_labels_stay_and_an_unlabelled_cluster_starts_with_pod_0(
    said: tuple[Role, ...], idle: float
) -> None:
    assert choose("alba", [pod(0), pod(1, "true")], 2, roles(*said), idle) is None
    assert choose("alba", [pod(0), pod(1)], 2, roles(*said), idle) == "alba-controller-0"


def test_the_label_moves_by_giving_before_taking() -> None:
    assert label_changes([pod(0, "true"), pod(1), pod(2)], "alba-controller-1") == (
        LabelChange(pod="alba-controller-1", uid="uid-1", active=True),
        LabelChange(pod="alba-controller-0", uid="uid-0", active=False),
    )


def test_nothing_is_patched_when_the_labels_are_right() -> None:
    assert label_changes([pod(0), pod(1, "true")], "alba-controller-1") == ()
    assert label_changes([pod(0), pod(1)], None) == ()


def test_the_label_is_not_taken_for_a_pod_that_is_not_there() -> None:
    assert label_changes([pod(1, "true")], "alba-controller-0") == ()


def test_a_label_with_another_value_is_put_right() -> None:
    assert label_changes([pod(0, "false"), pod(1, "no")], "alba-controller-0") == (
        LabelChange(pod="alba-controller-0", uid="uid-0", active=True),
        LabelChange(pod="alba-controller-1", uid="uid-1", active=False),
    )


def test_the_active_pod_is_the_labelled_one_and_pod_0_before() -> None:
    assert active_pod("alba", [pod(0), pod(1, "true")]) == "alba-controller-1"
    assert active_pod("alba", [pod(0), pod(1)]) == "alba-controller-0"
