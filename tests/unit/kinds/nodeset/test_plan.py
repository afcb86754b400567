"""Whole plans (field cases REG-06, SCL-04, DRN-10, LRG-02; spec: nodeset 30)."""

import pytest

from coil.api import keys
from coil.kinds.nodeset.actions import (
    Action,
    CreatePod,
    DeletePod,
    Drain,
    PatchConditions,
    PatchPod,
    SetComment,
    Undrain,
)
from coil.kinds.nodeset.cordon import MANY
from coil.kinds.nodeset.drain import Cause
from coil.kinds.nodeset.identity import encode_comment, pod_info
from coil.kinds.nodeset.plan import RESYNC, SILENCE, Plan, make_plan
from coil.kinds.nodeset.snapshot import Fault, Known, Snapshot
from coil.kinds.nodeset.starting import CALM, FEW
from coil.kinds.nodeset.times import text
from coil.kube.views import ConditionView
from coil.slurm.wire import SlurmNode
from tests.support.workers import NOW, host, job, nodeset, pod, record, replace, snapshot


def plan(seen: Snapshot) -> Plan:
    return make_plan(seen, NOW)


def of(kind: type[Action], made: Plan) -> list[Action]:
    return [action for action in made.actions if isinstance(action, kind)]


def settled(ordinal: int, state: str = "IDLE", **members: str) -> SlurmNode:
    """The record of a worker about which nothing needs to be written."""
    return record(
        f"gpu-{ordinal}", state, comment=encode_comment(pod_info(nodeset(), pod(ordinal))), **members
    )


def marked(cause: Cause) -> dict[str, str]:
    return {keys.ANNOTATION_POD_CORDON: "true", keys.ANNOTATION_POD_CORDON_CAUSE: cause.value}


def test_scale_in_marks_and_drains_before_it_deletes() -> None:
    made = plan(snapshot([pod(0), pod(1)], [settled(0), settled(1)], of=nodeset(replicas=1)))
    (patch,) = of(PatchPod, made)
    assert isinstance(patch, PatchPod)
    assert patch.annotations == marked(Cause.SCALE_IN)
    assert of(Drain, made)
    assert not of(DeletePod, made)
    assert made.waiting == {"gpu-1": "Slurm node is not drained yet"}
    assert [notice.reason for notice in made.notices] == ["ScalingDown"]


def test_a_drained_victim_is_deleted_and_nothing_else_is_written_to_it() -> None:
    drained = record("gpu-1", "IDLE+DRAIN", "slurm-operator: x")
    made = plan(
        snapshot(
            [pod(0), pod(1, annotations=marked(Cause.SCALE_IN))],
            [settled(0), drained],
            of=nodeset(replicas=1),
        )
    )
    (deletion,) = of(DeletePod, made)
    assert isinstance(deletion, DeletePod)
    assert (deletion.name, deletion.uid, deletion.cause) == ("gpu-1", "uid-gpu-1", Cause.SCALE_IN)
    touched = {action.uid for action in made.actions if isinstance(action, PatchPod | PatchConditions)}
    assert "uid-gpu-1" not in touched
    assert made.notices == ()


def test_an_older_view_is_not_acted_on() -> None:
    pods = [pod(0), pod(1, annotations=marked(Cause.SCALE_IN))]
    records = [settled(0), record("gpu-1", "IDLE+DRAIN", "slurm-operator: x")]
    made = plan(snapshot(pods, records, of=nodeset(replicas=1), fresh=False))
    assert made.ask_slurm
    assert made.actions == ()


def test_an_older_view_will_do_where_nothing_rests_on_it() -> None:
    made = plan(snapshot([], [], of=nodeset(replicas=2), fresh=False))
    assert not made.ask_slurm
    assert len(of(CreatePod, made)) == 2


def test_silence_creates_and_deletes_only_what_never_ran() -> None:
    pods = [pod(0), pod(1), pod(2, phase="Pending", node="")]
    made = plan(snapshot(pods, None, of=nodeset(replicas=1)))
    assert [action.name for action in of(DeletePod, made) if isinstance(action, DeletePod)] == ["gpu-2"]
    assert len(made.actions) == 1
    assert made.requeue_after == SILENCE
    assert of(CreatePod, plan(snapshot([], None)))


def test_silence_leaves_marks_conditions_and_protection() -> None:
    told = pod(
        0,
        annotations=marked(Cause.SCALE_IN) | {keys.ANNOTATION_POD_DEADLINE: text(NOW)},
        labels={keys.LABEL_POD_PROTECT: "true"},
    )
    assert plan(snapshot([told], None, of=nodeset(replicas=1))).actions == ()


def test_a_cache_that_lags_behind_is_not_acted_on() -> None:
    made = plan(snapshot([pod(0)], [record("gpu-0")], of=nodeset(replicas=3), settled=False))
    assert {type(action) for action in made.actions} == {PatchConditions}


def shown(seen: Snapshot, now: float = NOW) -> tuple[set[str], float]:
    """Pods whose conditions are written, and when the next pass is due."""
    made = make_plan(seen, now)
    return {action.name for action in of(PatchConditions, made) if isinstance(action, PatchConditions)}, (
        made.requeue_after
    )


def starting(count: int, *, ready_since: float) -> Snapshot:
    """So many workers of which Slurm knows and that show nothing of it."""
    views = [pod(number, ready_since=text(ready_since)) for number in range(count)]
    return snapshot(views, [settled(number) for number in range(count)], of=nodeset(replicas=count))


def test_what_was_just_done_to_a_pod_is_awaited_before_its_conditions_are_written() -> None:
    seen = snapshot([pod(0), pod(1)], [settled(0), settled(1)], settled=False)
    assert shown(seen)[0] == {"gpu-0", "gpu-1"}
    assert shown(replace(seen, under_way=frozenset({"uid-gpu-0"})))[0] == {"gpu-1"}


@pytest.mark.parametrize("is_settled", [True, False])
def test_while_many_workers_start_their_first_conditions_wait(is_settled: bool) -> None:
    few, many = (starting(count, ready_since=NOW) for count in (FEW, FEW + 1))
    few, many = (replace(seen, settled=is_settled) for seen in (few, many))
    assert len(shown(few, NOW + 1)[0]) == FEW
    assert shown(many, NOW + 1) == (set(), CALM - 1)
    assert len(shown(many, NOW + CALM)[0]) == FEW + 1


def test_a_changed_state_is_shown_at_once_however_many_workers_start() -> None:
    seen = starting(FEW + 2, ready_since=NOW)
    old = seen.workers[3].pod
    told = ConditionView(type="SlurmNodeStateDown", status="True", message="before")
    status = replace(old.status, conditions=(*old.status.conditions, told))
    changed = replace(seen.workers[3], pod=replace(old, status=status))
    workers = tuple(changed if worker.uid == changed.uid else worker for worker in seen.workers)
    assert shown(replace(seen, workers=workers), NOW + 1) == ({"gpu-3"}, CALM - 1)


def test_slurm_is_asked_again_at_once_only_when_idle_workers_that_leave_were_drained() -> None:
    idle = snapshot([pod(0), pod(1)], [settled(0), settled(1)], of=nodeset(replicas=1))
    assert plan(idle).frees
    busy = snapshot(
        [pod(0), pod(1)],
        [settled(0, "MIXED"), settled(1, "MIXED")],
        jobs=[job(1, "gpu-[0-1]")],
        of=nodeset(replicas=1),
    )
    assert of(Drain, plan(busy))
    assert not plan(busy).frees
    assert not plan(snapshot([pod(0), pod(1)], [settled(0), settled(1)])).frees


def test_a_worker_that_slurm_lost_is_made_anew() -> None:
    made = plan(snapshot([pod(0), pod(1)], [settled(0)]))
    (deletion,) = of(DeletePod, made)
    assert isinstance(deletion, DeletePod)
    assert deletion.name == "gpu-1"
    assert [notice.reason for notice in made.notices] == ["SlurmNodeNotRegistered"]


def test_workers_that_slurm_lost_go_one_after_the_other() -> None:
    pods = [pod(number) for number in range(8)]
    made = plan(snapshot(pods, [settled(0)], of=nodeset(replicas=8)))
    assert len(of(DeletePod, made)) == 2


def test_a_worker_that_turned_ready_just_now_is_waited_for() -> None:
    made = plan(snapshot([pod(0), pod(1, ready_since=text(NOW - 50))], [settled(0)]))
    assert not of(DeletePod, made)
    assert made.requeue_after == 10.0


def test_an_empty_list_loses_nobody() -> None:
    assert not of(DeletePod, plan(snapshot([pod(0), pod(1)], [])))


def test_an_ended_pod_is_replaced() -> None:
    made = plan(snapshot([pod(0), pod(1, phase="Failed")], [settled(0)]))
    (deletion,) = of(DeletePod, made)
    assert isinstance(deletion, DeletePod)
    assert (deletion.name, deletion.resource_version, deletion.cause) == ("gpu-1", "1", None)


def test_a_cordoned_machine_drains_its_worker_with_the_given_reason() -> None:
    node = host("kn-0", cordoned=True, annotations={keys.ANNOTATION_NODE_CORDON_REASON: "gpu fault"})
    busy = settled(0, "ALLOCATED")
    made = plan(snapshot([pod(0)], [busy], jobs=[job(1, "gpu-0")], hosts=[node], of=nodeset(replicas=1)))
    assert of(Drain, made) == [Drain(nodes=("gpu-0",), reason="slurm-operator: gpu fault")]
    assert not of(DeletePod, made)
    assert [notice.reason for notice in made.notices] == ["NodeCordon"]


def test_uncordoning_the_machine_returns_the_worker_whatever_the_strategy() -> None:
    view = pod(0, annotations=marked(Cause.NODE))
    drained = settled(0, "IDLE+DRAIN", reason="slurm-operator: gpu fault")
    keeper = nodeset(replicas=1, updateStrategy={"type": "OnDelete"})
    made = plan(snapshot([view], [drained], of=keeper))
    assert of(Undrain, made) == [Undrain(nodes=("gpu-0",))]
    assert not of(PatchPod, made)
    made = plan(snapshot([view], [settled(0)], of=keeper))
    (patch,) = of(PatchPod, made)
    assert isinstance(patch, PatchPod)
    assert patch.annotations == {keys.ANNOTATION_POD_CORDON: None, keys.ANNOTATION_POD_CORDON_CAUSE: None}


def test_a_busy_worker_is_protected_and_has_a_deadline() -> None:
    made = plan(
        snapshot([pod(0)], [settled(0, "MIXED")], jobs=[job(1, "gpu-0", minutes=30)], of=nodeset(replicas=1))
    )
    (patch,) = of(PatchPod, made)
    assert isinstance(patch, PatchPod)
    assert patch.labels == {keys.LABEL_POD_PROTECT: "true"}
    assert patch.annotations == {keys.ANNOTATION_POD_DEADLINE: text(NOW + 1800)}


def protection(seen: Snapshot) -> list[str | None]:
    patches = [action for action in of(PatchPod, plan(seen)) if isinstance(action, PatchPod)]
    return [patch.labels.get(keys.LABEL_POD_PROTECT, "") for patch in patches if patch.labels]


def test_protection_follows_jobs_and_stays_in_doubt() -> None:
    bare, told = pod(0), pod(0, labels={keys.LABEL_POD_PROTECT: "true"})
    keeper = nodeset(replicas=1)
    assert protection(snapshot([bare], [settled(0)], jobs=[job(1, "gpu-0")], of=keeper)) == ["true"]
    assert protection(snapshot([told], [settled(0)], jobs=[job(1, "gpu-0")], of=keeper)) == []
    assert protection(snapshot([told], [record("other")], of=keeper, absent_for=0.0)) == []
    assert protection(snapshot([bare], [record("other")], of=keeper, jobs=[job(1, "gpu-0")])) == ["true"]
    seen = snapshot([told], [settled(0)], of=keeper)
    assert protection(seen) == [None]
    assert isinstance(seen.slurm, Known)
    assert protection(replace(seen, slurm=replace(seen.slurm, doubt="a job could not be read"))) == []


def test_protection_can_be_switched_off() -> None:
    unprotected = nodeset(replicas=1, workloadDisruptionProtection=False)
    view = pod(0, labels={keys.LABEL_POD_PROTECT: "true"})
    (patch,) = of(PatchPod, plan(snapshot([view], [settled(0, "MIXED")], of=unprotected)))
    assert isinstance(patch, PatchPod)
    assert patch.labels == {keys.LABEL_POD_PROTECT: None}


def test_a_settled_nodeset_needs_nothing() -> None:
    views = [pod(0), pod(1)]
    seen = snapshot(views, [settled(0), settled(1)])
    states = of(PatchConditions, plan(seen))
    assert {type(action) for action in plan(seen).actions} == {PatchConditions}
    assert len(states) == 2
    assert plan(seen).requeue_after == RESYNC


def test_nothing_is_made_that_cannot_be_built() -> None:
    fault = Fault(reason="ControllerMissing", message="not found")
    made = plan(snapshot([], None, fault=fault))
    assert made.actions == ()
    assert made.notices == ()


def test_the_smallest_delay_wins() -> None:
    of_young = nodeset(replicas=1, minReadySeconds=15)
    made = plan(snapshot([pod(0, ready_since=text(NOW - 12))], [settled(0)], of=of_young))
    assert made.requeue_after == 3.0


@pytest.mark.parametrize("state", ["IDLE", "ALLOCATED"])
def test_a_new_record_gets_its_comment_without_asking_slurm(state: str) -> None:
    made = plan(snapshot([pod(0)], [record("gpu-0", state)], of=nodeset(replicas=1), fresh=False))
    assert of(SetComment, made)


def test_many_idle_workers_are_drained_and_deleted_without_a_word_on_their_pods() -> None:
    """Two writes for each less: a mark, and what Slurm says of a worker that is gone in a second."""
    count, idle, drained = MANY + 4, "IDLE", "IDLE+DRAIN"
    pods = [pod(number) for number in range(count)]

    def acts(state: str, reason: str) -> list[str]:
        records = [record(f"gpu-{number}", state, reason) for number in range(count)]
        plan = make_plan(snapshot(pods, records, of=nodeset(replicas=0)), NOW)
        kept = (action for action in plan.actions if not isinstance(action, SetComment))
        return [type(action).__name__ for action in kept]

    assert acts(idle, "") == ["Drain"]
    reason = "slurm-operator: Pods of namespace (slurm) are pending termination for scale-in"
    assert acts(drained, reason) == ["DeletePod"] * count
