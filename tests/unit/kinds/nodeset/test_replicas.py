"""How many workers, and which are too many (spec: nodeset 14; field cases SCL-04, SCL-13)."""

from coil.api import keys
from coil.kinds.nodeset import times
from coil.kinds.nodeset.actions import DeletePod, Drain, Undrain
from coil.kinds.nodeset.drain import Cause
from coil.kinds.nodeset.plan import make_plan
from coil.kinds.nodeset.replicas import plan_replicas
from coil.kinds.nodeset.scaling import BURST, Scaling
from coil.kinds.nodeset.snapshot import Snapshot
from coil.kinds.nodeset.victims import BETWEEN_JOBS
from coil.slurm.wire import Number
from tests.support.nodeset_world import POOL
from tests.support.workers import NOW, job, nodeset, pod, record, snapshot


def scale(seen: Snapshot) -> Scaling:
    return plan_replicas(seen)


def marked(cause: Cause) -> dict[str, str]:
    return {keys.ANNOTATION_POD_CORDON: "true", keys.ANNOTATION_POD_CORDON_CAUSE: cause.value}


def deadline(hours: float) -> dict[str, str]:
    return {keys.ANNOTATION_POD_DEADLINE: times.text(NOW + hours * 3600)}


def victims(scaling: Scaling) -> list[str]:
    return sorted(uid.removeprefix("uid-") for uid in scaling.condemned)


def test_a_mode_that_is_changed_back_costs_no_job() -> None:
    """Field case SCL-13: busy workers are drained and wait, then return to service."""
    jobs = [job(number, f"gpu-{number}") for number in range(4)]
    busy = [record(f"gpu-{number}", "ALLOCATED") for number in range(4)]
    there = nodeset(replicas=4, scalingMode="DaemonSet")
    away = make_plan(
        snapshot([pod(number) for number in range(4)], busy, jobs=jobs, of=there, placement=POOL), NOW
    )
    (*drains,) = [action for action in away.actions if isinstance(action, Drain)]
    assert sorted(name for drain in drains for name in drain.nodes) == [f"gpu-{n}" for n in range(4)]
    assert not [action for action in away.actions if isinstance(action, DeletePod)]

    drained = [record(f"gpu-{n}", "ALLOCATED+DRAIN", drains[0].reason) for n in range(4)]
    pods = [pod(number, annotations=marked(Cause.SCALING_MODE)) for number in range(4)]
    back = make_plan(snapshot(pods, drained, jobs=jobs, of=nodeset(replicas=4)), NOW)
    assert Undrain(nodes=("gpu-0", "gpu-1", "gpu-2", "gpu-3")) in back.actions
    assert not [action for action in back.actions if isinstance(action, DeletePod | Drain)]


def test_missing_workers_take_the_lowest_free_ordinals() -> None:
    scaling = scale(snapshot([pod(1), pod(3)], of=nodeset(replicas=5)))
    assert [action.name for action in scaling.create] == ["gpu-0", "gpu-2", "gpu-4"]
    assert scaling.missing == 3


def test_a_terminating_pod_holds_its_ordinal_and_its_place() -> None:
    scaling = scale(snapshot([pod(0, terminating=True), pod(1)], of=nodeset(replicas=3)))
    assert [action.ordinal for action in scaling.create] == [2]


def test_one_pass_creates_at_most_a_burst() -> None:
    scaling = scale(snapshot([], of=nodeset(replicas=1000)))
    assert len(scaling.create) == BURST
    assert scaling.goes_on
    assert scaling.missing == 1000


def test_padding_widens_names_only() -> None:
    scaling = scale(snapshot([], of=nodeset(replicas=1, ordinalPadding=3)))
    assert scaling.create[0].name == "gpu-000"


def test_surplus_workers_without_work_go_first() -> None:
    pods = [pod(0), pod(1, annotations=deadline(2)), pod(2, annotations=deadline(0.2))]
    assert victims(scale(snapshot(pods, of=nodeset(replicas=2)))) == ["gpu-0"]
    assert victims(scale(snapshot(pods, of=nodeset(replicas=1)))) == ["gpu-0", "gpu-2"]


def test_terminating_and_ended_pods_count_as_chosen() -> None:
    pods = [pod(0), pod(1, terminating=True), pod(2, phase="Failed"), pod(3)]
    assert victims(scale(snapshot(pods, of=nodeset(replicas=2)))) == []
    assert victims(scale(snapshot(pods, of=nodeset(replicas=1)))) == ["gpu-3"]


def test_a_chosen_worker_stays_chosen() -> None:
    pods = [pod(0, annotations=marked(Cause.SCALE_IN) | deadline(1)), pod(1, annotations=deadline(0.5))]
    records = [record("gpu-0", "ALLOCATED+DRAIN"), record("gpu-1", "ALLOCATED")]
    assert victims(scale(snapshot(pods, records, of=nodeset(replicas=1)))) == ["gpu-0"]


def test_a_busy_victim_is_swapped_for_an_idle_worker() -> None:
    pods = [pod(0, annotations=marked(Cause.SCALE_IN) | deadline(1)), pod(1)]
    records = [record("gpu-0", "ALLOCATED+DRAIN"), record("gpu-1", "IDLE")]
    assert victims(scale(snapshot(pods, records, of=nodeset(replicas=1)))) == ["gpu-1"]


def test_a_worker_between_two_jobs_is_no_substitute() -> None:
    """Where jobs wait it is busy again a second later: victims would change for ever."""
    pods = [pod(0, annotations=marked(Cause.SCALE_IN) | deadline(1)), pod(1)]
    for idle_for, victim in ((BETWEEN_JOBS - 1, "gpu-0"), (BETWEEN_JOBS, "gpu-1")):
        idle = record("gpu-1", "IDLE", last_busy=Number(set=True, number=int(NOW - idle_for)))
        records = [record("gpu-0", "ALLOCATED+DRAIN"), idle]
        assert victims(scale(snapshot(pods, records, of=nodeset(replicas=1)))) == [victim]


def test_a_drained_victim_is_not_swapped() -> None:
    pods = [pod(0, annotations=marked(Cause.SCALE_IN)), pod(1)]
    records = [record("gpu-0", "IDLE+DRAIN"), record("gpu-1", "IDLE")]
    assert victims(scale(snapshot(pods, records, of=nodeset(replicas=1)))) == ["gpu-0"]


def test_nobody_is_swapped_while_slurm_is_silent() -> None:
    pods = [pod(0, annotations=marked(Cause.SCALE_IN) | deadline(1)), pod(1)]
    assert victims(scale(snapshot(pods, None, of=nodeset(replicas=1)))) == ["gpu-0"]


def test_an_expensive_idle_worker_is_no_substitute() -> None:
    expensive = {keys.ANNOTATION_POD_DELETION_COST: "100"}
    pods = [pod(0, annotations=marked(Cause.SCALE_IN) | deadline(1)), pod(1, annotations=expensive)]
    records = [record("gpu-0", "ALLOCATED+DRAIN"), record("gpu-1", "IDLE")]
    assert victims(scale(snapshot(pods, records, of=nodeset(replicas=1)))) == ["gpu-0"]


def test_fewer_victims_keep_those_that_are_drained_already() -> None:
    mark = marked(Cause.SCALE_IN)
    pods = [pod(0), pod(1, annotations=mark), pod(2, annotations=mark | deadline(1))]
    records = [record("gpu-0"), record("gpu-1", "IDLE+DRAIN"), record("gpu-2", "MIXED+DRAIN")]
    assert victims(scale(snapshot(pods, records, of=nodeset(replicas=2)))) == ["gpu-1"]


def test_workers_of_the_other_mode_leave_once_the_count_is_right() -> None:
    old = pod(7, mode="DaemonSet")
    seen = snapshot([old], of=nodeset(replicas=1))
    assert victims(scale(seen)) == []
    assert [action.ordinal for action in scale(seen).create] == [0]
    scaling = scale(snapshot([old, pod(0)], of=nodeset(replicas=1)))
    assert scaling.condemned == {"uid-gpu-7": Cause.SCALING_MODE}


def test_a_worker_of_the_other_mode_stays_condemned_when_a_new_one_is_missing() -> None:
    old = pod(7, mode="DaemonSet", annotations=marked(Cause.SCALING_MODE))
    assert scale(snapshot([old], of=nodeset(replicas=1))).condemned == {"uid-gpu-7": Cause.SCALING_MODE}


def test_scale_to_zero() -> None:
    assert victims(scale(snapshot([pod(0), pod(1)], of=nodeset(replicas=0)))) == ["gpu-0", "gpu-1"]
