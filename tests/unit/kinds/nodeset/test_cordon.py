"""Marks on pods and drains in Slurm (spec: nodeset 13; invariant I3; field cases DRN-01, -02, -04, -05)."""

from typing import Any

import pytest

from coil.api import keys
from coil.kinds.nodeset.actions import Drain, Undrain
from coil.kinds.nodeset.cordon import MANY, OWN_REASONS, cordon_marks, passing, plan_drains
from coil.kinds.nodeset.drain import POD_TERMINATING, Cause
from coil.kinds.nodeset.snapshot import Held, Snapshot
from coil.kube.views import PodView
from coil.slurm.wire import SlurmNode
from tests.support.workers import host, job, nodeset, pod, record, snapshot

SCALE_IN = {"uid-gpu-0": Cause.SCALE_IN}
PENDING = "slurm-operator: Pod (slurm/gpu-0) is pending termination for scale-in"
CORDONED = "slurm-operator: Pod (slurm/gpu-0) was cordoned"
USERS = {keys.ANNOTATION_POD_CORDON: "true"}


def own(cause: Cause) -> dict[str, str]:
    return USERS | {keys.ANNOTATION_POD_CORDON_CAUSE: cause.value}


def one(node: SlurmNode | None, view: PodView | None = None, *, cordoned: bool = False) -> Snapshot:
    records = [record("other")] if node is None else [node]
    return snapshot([view or pod(0)], records, hosts=[host("kn-0", cordoned=cordoned)])


def test_scale_in_drains() -> None:
    seen = one(record("gpu-0"))
    assert plan_drains(seen, SCALE_IN) == [Drain(nodes=("gpu-0",), reason=PENDING)]


@pytest.mark.parametrize("reason", ["", PENDING, CORDONED, "xid 79"])
def test_a_drained_node_is_not_drained_again(reason: str) -> None:
    drained = record("gpu-0", "IDLE+DRAIN", reason)
    for cordoned in (False, True):
        assert plan_drains(one(drained, cordoned=cordoned), SCALE_IN) == []


def test_scale_in_of_a_node_that_somebody_took_down_keeps_the_reason() -> None:
    seen = one(record("gpu-0", "DOWN", "bad fan"))
    assert plan_drains(seen, SCALE_IN) == [Drain(nodes=("gpu-0",), reason="")]


def test_a_cordon_does_not_touch_a_node_that_somebody_took_down() -> None:
    assert plan_drains(one(record("gpu-0", "DOWN", "bad fan"), cordoned=True), {}) == []
    assert plan_drains(one(record("gpu-0", "DOWN+NOT_RESPONDING", "Not responding"), cordoned=True), {}) == []


def test_an_unregistered_worker_cannot_be_drained() -> None:
    assert plan_drains(one(None), SCALE_IN) == []


def test_terminating_and_ended_pods_are_left_alone() -> None:
    for view in (pod(0, terminating=True), pod(0, phase="Failed")):
        assert plan_drains(one(record("gpu-0"), view), SCALE_IN) == []
        assert plan_drains(one(record("gpu-0", "IDLE+DRAIN", PENDING), view), {}) == []


def test_a_users_cordon_drains() -> None:
    seen = one(record("gpu-0"), pod(0, annotations=USERS))
    assert plan_drains(seen, {}) == [Drain(nodes=("gpu-0",), reason=CORDONED)]


def test_the_first_reason_of_ours_stays_for_a_cordon() -> None:
    seen = one(record("gpu-0", "DOWN", "slurm-operator: gpu fault"), pod(0, annotations=USERS))
    assert plan_drains(seen, {}) == [Drain(nodes=("gpu-0",), reason="")]


def test_the_good_bye_of_a_predecessor_is_no_reason() -> None:
    seen = one(record("gpu-0", "DOWN", POD_TERMINATING), pod(0, annotations=USERS))
    assert plan_drains(seen, {}) == [Drain(nodes=("gpu-0",), reason=CORDONED)]


def test_our_drain_is_taken_back_when_nothing_wants_it() -> None:
    assert plan_drains(one(record("gpu-0", "MIXED+DRAIN", PENDING)), {}) == [Undrain(nodes=("gpu-0",))]


@pytest.mark.parametrize("reason", ["bad fan", "", "slurm-operator"])
def test_a_drain_of_others_is_never_taken_back(reason: str) -> None:
    marked = pod(0, annotations=own(Cause.SCALE_IN))
    for view in (pod(0), marked):
        assert plan_drains(one(record("gpu-0", "IDLE+DRAIN", reason), view), {}) == []


@pytest.mark.parametrize("state", ["IDLE+DRAIN+NOT_RESPONDING", "DOWN+DRAIN"])
def test_a_dead_node_is_not_undrained(state: str) -> None:
    assert plan_drains(one(record("gpu-0", state, PENDING)), {}) == []


def test_a_drain_of_a_silent_node_is_taken_back_when_it_answers() -> None:
    marked = pod(0, annotations=own(Cause.SCALE_IN))
    silent = record("gpu-0", "DOWN+DRAIN+NOT_RESPONDING", "Not responding")
    assert plan_drains(one(silent, marked), {}) == []
    assert cordon_marks(one(silent, marked).workers[0], None) == {}
    back = record("gpu-0", "IDLE+DRAIN", "Not responding")
    assert plan_drains(one(back, marked), {}) == [Undrain(nodes=("gpu-0",))]


def test_undraining_comes_before_draining() -> None:
    seen = snapshot([pod(0), pod(1)], [record("gpu-0", "MIXED+DRAIN", PENDING), record("gpu-1")])
    kinds = [type(action) for action in plan_drains(seen, {"uid-gpu-1": Cause.SCALE_IN})]
    assert kinds == [Undrain, Drain]


def test_many_drains_are_one_call() -> None:
    count = OWN_REASONS + 1
    seen = snapshot([pod(n) for n in range(count)], [record(f"gpu-{n}") for n in range(count)])
    (drain,) = plan_drains(seen, {worker.uid: Cause.SCALE_IN for worker in seen.workers})
    assert drain == Drain(
        nodes=tuple(f"gpu-{n}" for n in range(count)),
        reason="slurm-operator: Pods of namespace (slurm) are pending termination for scale-in",
    )


def test_marks_name_the_cause() -> None:
    assert cordon_marks(one(record("gpu-0")).workers[0], Cause.NODE) == own(Cause.NODE)


def test_another_cause_replaces_our_own() -> None:
    worker = one(record("gpu-0"), pod(0, annotations=own(Cause.NODE))).workers[0]
    assert cordon_marks(worker, Cause.NODE) == {}
    assert cordon_marks(worker, Cause.SCALE_IN) == own(Cause.SCALE_IN)


@pytest.mark.parametrize("cause", [None, *Cause])
def test_a_users_mark_is_never_changed(cause: Cause | None) -> None:
    worker = one(record("gpu-0"), pod(0, annotations=USERS)).workers[0]
    assert cordon_marks(worker, cause) == {}


def test_our_mark_goes_after_the_drain_is_gone() -> None:
    marked = pod(0, annotations=own(Cause.SCALE_IN))
    gone = {keys.ANNOTATION_POD_CORDON: None, keys.ANNOTATION_POD_CORDON_CAUSE: None}
    assert cordon_marks(one(record("gpu-0", "IDLE+DRAIN", PENDING), marked).workers[0], None) == {}
    assert cordon_marks(one(record("gpu-0"), marked).workers[0], None) == gone
    assert cordon_marks(one(record("gpu-0", "IDLE+DRAIN", "bad fan"), marked).workers[0], None) == gone
    assert cordon_marks(one(None, marked).workers[0], None) == gone


def test_a_cause_without_cordon_is_cleaned_up() -> None:
    worker = one(record("gpu-0"), pod(0, annotations={keys.ANNOTATION_POD_CORDON_CAUSE: "node"})).workers[0]
    assert cordon_marks(worker, None) == {keys.ANNOTATION_POD_CORDON_CAUSE: None}


def test_cordon_and_uncordon_of_the_machine_leave_an_admins_drain() -> None:
    drained = record("gpu-0", "IDLE+DRAIN", "bad fan")
    for cordoned in (False, True, False):
        assert plan_drains(one(drained, cordoned=cordoned), {}) == []


def test_another_nodeset_is_not_looked_at() -> None:
    seen = snapshot([], [record("gpu-0", "IDLE+DRAIN", PENDING)], of=nodeset(replicas=0))
    assert plan_drains(seen, {}) == []


@pytest.mark.parametrize("power", ["POWERED_DOWN", "POWERING_UP", "POWER_UP"])
@pytest.mark.parametrize("base", ["ALLOCATED", "MIXED"])
def test_a_node_that_is_powered_up_for_a_job_is_not_drained(base: str, power: str) -> None:
    """Slurmctld would kill or requeue the job."""
    waking = record("gpu-0", f"{base}+{power}")
    for seen in (one(waking), one(waking, cordoned=True), one(waking, pod(0, annotations=USERS))):
        assert plan_drains(seen, SCALE_IN) == []
    assert plan_drains(one(record("gpu-0", f"IDLE+{power}")), SCALE_IN)
    assert plan_drains(one(record("gpu-0", base)), SCALE_IN)


def test_a_job_on_a_node_that_is_powered_up_counts_too() -> None:
    seen = snapshot([pod(0)], [record("gpu-0", "IDLE+POWERING_UP")], jobs=[job(7, "gpu-0")])
    assert plan_drains(seen, SCALE_IN) == []


@pytest.mark.parametrize(
    ("reason", "user"),
    [
        ("Not responding to IPMI, RMA 12", "slurm"),
        ("Not responding", "anna"),
        ("Not responding", ""),
        (f"{PENDING} : reboot ASAP for firmware", "slurm"),
    ],
)
def test_what_a_person_wrote_or_added_is_never_taken_back(reason: str, user: str) -> None:
    node = record("gpu-0", "IDLE+DRAIN", reason, reason_user=user)
    assert plan_drains(one(node, pod(0, annotations=own(Cause.SCALE_IN))), {}) == []


@pytest.mark.parametrize("flag", ["REBOOT_ISSUED", "REBOOT_REQUESTED", "INVALID_REG", "POWERING_DOWN"])
def test_a_node_that_is_about_something_else_is_not_undrained(flag: str) -> None:
    assert plan_drains(one(record("gpu-0", f"IDLE+DRAIN+{flag}", PENDING)), {}) == []


def leaving(count: int, cause: Cause = Cause.SCALE_IN) -> dict[str, Cause]:
    return {f"uid-gpu-{number}": cause for number in range(count)}


def idle(count: int, first: PodView | None = None, node: SlurmNode | None = None, **members: Any) -> Snapshot:
    """Idle workers, the first of which is told by the arguments."""
    others = range(1, count)
    pods = [first or pod(0), *(pod(number) for number in others)]
    records = [node or record("gpu-0"), *(record(f"gpu-{number}") for number in others)]
    return snapshot(pods, records, **members)


def test_many_idle_workers_leave_unmarked() -> None:
    assert passing(idle(MANY + 1), leaving(MANY + 1)) == leaving(MANY + 1).keys()
    assert passing(idle(MANY), leaving(MANY)) == frozenset()


def test_workers_that_the_operator_has_drained_need_no_mark_any_more() -> None:
    """They are deleted now; those that Slurm had not drained when it was asked are marked."""
    drained = snapshot([pod(0), pod(1)], [record("gpu-0", "IDLE+DRAIN", PENDING), record("gpu-1")])
    assert passing(drained, leaving(2)) == {"uid-gpu-0"}


@pytest.mark.parametrize("cause", [Cause.UPDATE, Cause.REPLACE, Cause.SCALING_MODE])
def test_workers_that_leave_for_another_cause_are_marked(cause: Cause) -> None:
    """How many an update has taken out is counted by their marks (I4)."""
    assert passing(idle(MANY + 2), leaving(MANY + 2, cause)) == frozenset()


@pytest.mark.parametrize(
    "members",
    [
        {"node": record("gpu-0", "ALLOCATED")},
        {"jobs": [job(1, "gpu-0")]},
        {"node": record("gpu-0", "IDLE+DRAIN", "bad fan")},
        {"node": record("gpu-0", "DOWN", "bad fan")},
        {"node": record("gpu-0", "IDLE", "xid 79")},
        {"node": record("gpu-0", "IDLE+NOT_RESPONDING")},
        {"first": pod(0, annotations=USERS)},
        {"first": pod(0, annotations=own(Cause.NODE)), "node": record("gpu-0", "IDLE+DRAIN", PENDING)},
        {"first": pod(0, ready=False)},
        {"held": Held(drains={"gpu-0": "bad fan"})},
    ],
)
def test_whoever_may_not_go_at_once_is_marked(members: dict[str, Any]) -> None:
    count = MANY + 2
    assert passing(idle(count, **members), leaving(count)) == leaving(count).keys() - {"uid-gpu-0"}
