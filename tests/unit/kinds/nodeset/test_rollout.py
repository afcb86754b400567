"""Rolling updates (spec: nodeset 23, 32; invariant I4; field cases SCL-05, SCL-06)."""

import pytest

from coil.api import keys
from coil.api.nodeset import NodeSet
from coil.kinds.nodeset import times
from coil.kinds.nodeset.drain import Cause
from coil.kinds.nodeset.replicas import plan_replicas
from coil.kinds.nodeset.rollout import disruption_budget, plan_rollout, scaled
from coil.kinds.nodeset.snapshot import Fault, Registration, Snapshot
from coil.kube.views import PodView
from tests.support.workers import NOW, OLD_REVISION, nodeset, pod, record, replace, snapshot

OLD = {"revision": OLD_REVISION}
PENDING = {"phase": "Pending", "waiting": "ImagePullBackOff"}


def rolling(replicas: int, limit: int | str = 1, **spec: object) -> NodeSet:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": limit}}
    return nodeset(replicas=replicas, updateStrategy=strategy, **spec)


def chosen(seen: Snapshot) -> list[str]:
    causes = plan_rollout(seen, plan_replicas(seen), NOW)
    assert set(causes.values()) <= {Cause.UPDATE}
    return sorted(uid.removeprefix("uid-") for uid in causes)


@pytest.mark.parametrize(
    ("limit", "total", "count"),
    [("25%", 10, 3), ("1%", 1000, 10), ("25%", 0, 0), ("3", 10, 1), (5, 3, 5), ("x", 9, 1), ("-5%", 9, 1)],
)
def test_max_unavailable(limit: int | str, total: int, count: int) -> None:
    assert scaled(limit, total) == count


def test_old_worker_stays_while_a_new_one_is_not_ready() -> None:
    assert chosen(snapshot([pod(0, ready=False), pod(1, **OLD)], of=rolling(2))) == []


def test_old_pending_pod_goes_and_healthy_one_stays_within_the_limit() -> None:
    pods = [pod(0, ready=False), pod(1, **OLD, **PENDING), pod(2, **OLD)]
    assert chosen(snapshot(pods, of=rolling(3, 1))) == ["gpu-1"]


def test_unhealthy_old_pods_use_up_the_limit() -> None:
    """Differs from the reference, where a third worker of three would go although two may be out (I4)."""
    pods = [pod(0, ready=False), pod(1, **OLD, **PENDING), pod(2, **OLD)]
    assert chosen(snapshot(pods, of=rolling(3, 2))) == ["gpu-1"]
    assert chosen(snapshot(pods, of=rolling(3, 3))) == ["gpu-1", "gpu-2"]


def test_only_the_crash_looping_pod_is_unhealthy() -> None:
    pods = [pod(0, **OLD), pod(1, ready=False, waiting="CrashLoopBackOff", **OLD), pod(2, **OLD)]
    assert chosen(snapshot(pods, of=rolling(3, 1))) == ["gpu-1"]


def test_workers_without_work_go_first() -> None:
    busy = {keys.ANNOTATION_POD_DEADLINE: times.text(NOW + 60)}
    pods = [pod(0, **OLD), pod(1, annotations=busy, **OLD), pod(2, annotations=busy, **OLD)]
    assert chosen(snapshot(pods, of=rolling(3, 1))) == ["gpu-0"]


def test_empty_slots_use_up_the_limit() -> None:
    assert chosen(snapshot([pod(0, **OLD), pod(1, **OLD)], of=rolling(3, 1))) == []
    terminating = pod(2, terminating=True, **OLD)
    assert chosen(snapshot([pod(0, **OLD), pod(1, **OLD), terminating], of=rolling(3, 1))) == []


def test_a_new_worker_counts_when_it_was_ready_for_long_enough() -> None:
    young = pod(0, ready_since=times.text(NOW - 10))
    seen = snapshot([young, pod(1, **OLD)], of=rolling(2, 1, minReadySeconds=30))
    assert chosen(seen) == []
    assert plan_rollout(seen, plan_replicas(seen), NOW + 20) == {"uid-gpu-1": Cause.UPDATE}


def test_a_draining_worker_stays_chosen() -> None:
    mark = {keys.ANNOTATION_POD_CORDON: "true", keys.ANNOTATION_POD_CORDON_CAUSE: "update"}
    busy = {keys.ANNOTATION_POD_DEADLINE: times.text(NOW + 600)}
    pods = [pod(0, annotations=mark | busy, **OLD), pod(1, annotations=busy, **OLD)]
    records = [record("gpu-0", "MIXED+DRAIN"), record("gpu-1", "MIXED")]
    assert chosen(snapshot(pods, records, of=rolling(2, 1))) == ["gpu-0"]


def test_a_swap_waits_until_the_busy_worker_is_back() -> None:
    mark = {keys.ANNOTATION_POD_CORDON: "true", keys.ANNOTATION_POD_CORDON_CAUSE: "update"}
    busy = {keys.ANNOTATION_POD_DEADLINE: times.text(NOW + 600)}
    pods = [pod(0, annotations=mark | busy, **OLD), pod(1, **OLD)]
    draining = [record("gpu-0", "MIXED+DRAIN", "slurm-operator: x"), record("gpu-1")]
    assert chosen(snapshot(pods, draining, of=rolling(2, 1))) == []
    back = [record("gpu-0", "MIXED"), record("gpu-1")]
    assert chosen(snapshot(pods, back, of=rolling(2, 1))) == ["gpu-1"]


def test_a_drain_that_somebody_took_back_is_made_anew_only_within_the_limit() -> None:
    """Should the busy worker that is to return not do so, as many are out as before."""
    mark = {keys.ANNOTATION_POD_CORDON: "true", keys.ANNOTATION_POD_CORDON_CAUSE: "update"}
    busy = {keys.ANNOTATION_POD_DEADLINE: times.text(NOW + 600)}
    pods = [pod(0, annotations=mark | busy, **OLD), pod(1, annotations=mark, **OLD)]
    taken_back = [record("gpu-0", "MIXED+DRAIN", "slurm-operator: x"), record("gpu-1")]
    assert chosen(snapshot(pods, taken_back, of=rolling(2, 1))) == []
    assert chosen(snapshot(pods, [record("gpu-0", "MIXED"), record("gpu-1")], of=rolling(2, 1))) == ["gpu-1"]


def test_a_worker_that_half_an_answer_lacks_holds_the_roll() -> None:
    pods = [pod(0), pod(1, **OLD)]
    whole = snapshot(pods, [record("gpu-0"), record("gpu-1")], of=rolling(2, 1))
    assert chosen(whole) == ["gpu-1"]
    half = snapshot(pods, [record("gpu-1")], of=rolling(2, 1))
    doubtful = (replace(half.workers[0], registration=Registration.UNKNOWN), half.workers[1])
    assert chosen(replace(half, workers=doubtful)) == []


def test_leaving_workers_are_not_rolled() -> None:
    pods = [pod(0, **OLD), pod(1, **OLD), pod(2, **OLD)]
    seen = snapshot(pods, of=rolling(2, 1))
    assert list(plan_replicas(seen).condemned) == ["uid-gpu-2"]
    assert chosen(seen) == ["gpu-1"]


def test_nothing_is_rolled_that_cannot_be_built() -> None:
    fault = Fault(reason="ControllerMissing", message="not found")
    assert chosen(snapshot([pod(0, **OLD)], of=rolling(1), fault=fault)) == []


def test_on_delete_rolls_nothing() -> None:
    of = nodeset(replicas=1, updateStrategy={"type": "OnDelete"})
    assert chosen(snapshot([pod(0, ready=False, **OLD)], of=of)) == []


def test_scheduled_update_takes_workers_inside_their_reservation() -> None:
    of = nodeset(replicas=3, updateStrategy={"type": "ScheduledUpdate"})
    inside = record("gpu-0", "IDLE+MAINTENANCE", reservation="SlurmOperatorMaint-gpu")
    foreign = record("gpu-1", "IDLE+MAINTENANCE", reservation="weekly")
    pods = [pod(0, **OLD), pod(1, **OLD), pod(2, **OLD)]
    assert chosen(snapshot(pods, [inside, foreign, record("gpu-2")], of=of)) == ["gpu-0"]


@pytest.mark.parametrize(
    ("pods", "budget"),
    [
        ([pod(0), pod(1), pod(2)], 2),
        ([pod(0), pod(1)], 1),
        ([pod(0), pod(1, ready=False), pod(2)], 1),
        ([pod(0, ready=False), pod(1, ready=False), pod(2, ready=False)], 0),
    ],
)
def test_disruption_budget(pods: list[PodView], budget: int) -> None:
    seen = snapshot(pods, of=rolling(3, 2))
    assert disruption_budget(seen, plan_replicas(seen), {}, NOW) == budget


@pytest.mark.parametrize("state", ["DOWN", "IDLE+INVALID_REG", "IDLE+NOT_RESPONDING", "IDLE+FAIL"])
def test_a_new_worker_that_slurm_does_not_use_holds_the_roll(state: str) -> None:
    pods = [pod(0), pod(1, **OLD)]
    assert chosen(snapshot(pods, [record("gpu-0"), record("gpu-1")], of=rolling(2))) == ["gpu-1"]
    assert chosen(snapshot(pods, [record("gpu-0", state), record("gpu-1")], of=rolling(2))) == []
    assert chosen(snapshot(pods, [record("gpu-1")], of=rolling(2))) == [], "not registered"


@pytest.mark.parametrize(
    ("state", "reason", "goes"),
    [
        ("IDLE+DRAIN", "bad DIMM", True),
        ("DOWN+DRAIN", "bad DIMM", True),
        ("DOWN", "bad DIMM", False),
        ("DOWN+DRAIN+NOT_RESPONDING", "bad DIMM", False),
        ("DOWN+DRAIN", "Kill task failed", False),
        ("DOWN+DRAIN", "slurm-operator: Pod is terminating", False),
    ],
)
def test_a_new_worker_that_an_admin_drained_holds_no_roll(state: str, reason: str, goes: bool) -> None:
    """Neither when the good-bye of its predecessor set its node DOWN."""
    seen = snapshot([pod(0), pod(1, **OLD)], [record("gpu-0", state, reason), record("gpu-1")], of=rolling(2))
    assert chosen(seen) == (["gpu-1"] if goes else [])


def test_silence_of_slurm_does_not_hold_the_roll() -> None:
    """Nothing is drained or deleted meanwhile anyway."""
    assert chosen(snapshot([pod(0), pod(1, **OLD)], None, of=rolling(2))) == ["gpu-1"]


@pytest.mark.parametrize("limit", [1, 2])
def test_old_workers_that_slurm_does_not_use_go_first_and_within_the_limit(limit: int) -> None:
    pods = [pod(number, **OLD) for number in range(4)]
    records = [record(f"gpu-{n}", "IDLE+INVALID_REG" if n < 3 else "IDLE") for n in range(4)]
    assert len(chosen(snapshot(pods, records, of=rolling(4, limit)))) == limit
    assert "gpu-3" not in chosen(snapshot(pods, records, of=rolling(4, limit)))


@pytest.mark.parametrize(("ago", "count"), [(30, 2), (61, 6)])
def test_a_blip_of_all_old_workers_condemns_no_more_than_the_limit(ago: int, count: int) -> None:
    since = times.text(NOW - ago)
    pods = [pod(number, ready=False, ready_since=since, **OLD) for number in range(6)]
    assert len(chosen(snapshot(pods, of=rolling(6, 2)))) == count


def test_silent_nodes_are_not_condemned_at_once() -> None:
    pods = [pod(number, **OLD) for number in range(6)]
    records = [record(f"gpu-{number}", "IDLE+NOT_RESPONDING") for number in range(6)]
    assert len(chosen(snapshot(pods, records, of=rolling(6, 2)))) == 2
