"""The status of a NodeSet (spec: nodeset 2.3, 24.2, 24.3; field case LRG-12)."""

import re

import msgspec
import pytest

from coil.api.conditions import find
from coil.api.nodeset import NodeSet, NodeSetStatus
from coil.kinds.nodeset import times
from coil.kinds.nodeset.plan import make_plan
from coil.kinds.nodeset.report import not_starting, status, status_patch
from coil.kinds.nodeset.snapshot import Known, Snapshot, Unknown
from coil.kinds.status import RECONCILED, SLURM_REACHABLE, Problem
from coil.kube.views import PodView
from tests.support.workers import NOW, OLD_REVISION, REVISION, nodeset, pod, record, snapshot

NOT_YET = Unknown(reason="NotAskedYet", message="", not_yet=True)


def report(seen: Snapshot, *problems: Problem, at: float = NOW) -> NodeSetStatus:
    return status(seen, make_plan(seen, at), problems, at)


def again(seen: Snapshot, told: NodeSetStatus) -> Snapshot:
    """The same snapshot, with the status written."""
    return msgspec.structs.replace(seen, nodeset=msgspec.structs.replace(seen.nodeset, status=told))


def test_counters_of_pods() -> None:
    pods = [
        pod(0),
        pod(1, ready_since=times.text(NOW - 5)),
        pod(2, ready=False, revision=OLD_REVISION),
        pod(3, phase="Pending", node=""),
        pod(4, terminating=True),
        pod(5, phase="Failed"),
    ]
    told = report(snapshot(pods, of=nodeset(replicas=7, minReadySeconds=30)))
    assert told.replicas == 6
    assert told.updated_replicas == 4
    assert told.ready_replicas == 3
    assert told.available_replicas == 2
    assert told.unavailable_replicas == 4
    assert told.desired == 7
    assert told.node_set_hash == REVISION
    assert told.observed_generation == 1
    assert told.collision_count == 0
    assert told.selector == "app.kubernetes.io/instance=gpu,app.kubernetes.io/name=slurmd"


def test_slurm_counters_count_only_our_workers_and_stay_while_slurm_is_silent() -> None:
    records = [record("gpu-0", "MIXED"), record("gpu-1", "IDLE+DRAIN"), record("other-0")]
    seen = snapshot([pod(0), pod(1)], records)
    told = report(seen)
    assert (told.slurm_allocated, told.slurm_idle, told.slurm_drain, told.slurm_down) == (1, 1, 1, 0)
    silent = snapshot([pod(0), pod(1)], None, of=again(seen, told).nodeset)
    assert report(silent).slurm_allocated == 1


def test_before_slurm_was_asked_the_condition_stays_as_it_was() -> None:
    """A restarted operator must not tell an outage that there never was (I8)."""
    seen = snapshot([pod(0)], [record("gpu-0")], of=nodeset(replicas=1))
    told = report(seen)
    started = msgspec.structs.replace(again(seen, told), slurm=NOT_YET)
    assert status_patch(told, report(started, at=NOW + 60)) == {}
    fresh = msgspec.structs.replace(seen, slurm=NOT_YET)
    assert find(report(fresh).conditions, SLURM_REACHABLE) is None


def test_an_unchanged_status_gives_no_patch() -> None:
    seen = snapshot([pod(0)], [record("gpu-0")], of=nodeset(replicas=1))
    told = report(seen)
    later = report(again(seen, told), at=NOW + 600)
    assert status_patch(told, later) == {}


def test_a_patch_names_only_what_changed_and_what_the_schema_requires() -> None:
    seen = snapshot([pod(0)], [record("gpu-0")], of=nodeset(replicas=1))
    told = report(seen)
    busy = snapshot([pod(0)], [record("gpu-0", "MIXED")], of=again(seen, told).nodeset)
    patch = status_patch(told, report(busy))
    assert patch == {
        "nodeSetHash": REVISION,
        "selector": told.selector,
        "slurmIdle": None,
        "slurmAllocated": 1,
    }


def test_a_condition_is_written_with_its_empty_message() -> None:
    bare = msgspec.convert({"conditions": [{"type": "ReservationCreated", "status": "True"}]}, NodeSetStatus)
    (condition,) = status_patch(NodeSetStatus(), bare)["conditions"]
    assert condition == {"type": "ReservationCreated", "status": "True", "message": ""}


def test_conditions_of_others_stay() -> None:
    foreign = {"type": "ReservationCreated", "status": "True", "reason": "Created", "message": ""}
    given = msgspec.convert({"conditions": [foreign], "nodeSetHash": "x", "selector": "y"}, NodeSetStatus)
    of = msgspec.structs.replace(nodeset(replicas=0), status=given)
    told = report(snapshot([], [], of=of))
    assert [c.type for c in told.conditions] == ["ReservationCreated", SLURM_REACHABLE, RECONCILED]


def test_an_outage_keeps_its_first_message() -> None:
    def silent(message: str, of: NodeSet) -> Snapshot:
        seen = snapshot([], None, of=of)
        return msgspec.structs.replace(seen, slurm=Unknown(reason="Unreachable", message=message))

    first = silent("refused", nodeset(replicas=0))
    told = report(first)
    later = report(silent("timed out", again(first, told).nodeset), at=NOW + 60)
    assert status_patch(told, later) == {}


def test_doubts_are_told() -> None:
    seen = snapshot([], [], of=nodeset(replicas=0))
    doubtful = Known(observed_at=NOW, fresh=True, node_count=1, doubt="one node could not be read")
    told = report(msgspec.structs.replace(seen, slurm=doubtful))
    condition = find(told.conditions, SLURM_REACHABLE)
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "IncompleteAnswer")


def test_problems_make_it_unreconciled() -> None:
    told = report(snapshot([], [], of=nodeset(replicas=0)), Problem("NodeSetPods", "Invalid", "no image"))
    condition = find(told.conditions, RECONCILED)
    assert condition is not None
    assert (condition.status, condition.reason, condition.message) == (
        "False",
        "Invalid",
        "NodeSetPods: no image",
    )


def test_pods_that_wait_to_leave_are_named_up_to_a_point() -> None:
    pods = [pod(number) for number in range(5)]
    records = [record(f"gpu-{number}", "MIXED") for number in range(5)]
    told = report(snapshot(pods, records, of=nodeset(replicas=0)))
    condition = find(told.conditions, RECONCILED)
    assert condition is not None
    assert condition.reason == "PodsWaitToLeave"
    assert condition.message.startswith("gpu-0: Slurm node is not drained yet; gpu-1: ")
    assert condition.message.endswith("; and 2 more")


@pytest.mark.parametrize(
    ("strategy", "state", "told"),
    [
        ("RollingUpdate", "DOWN", "UpdateWaits"),
        ("RollingUpdate", "IDLE", "PodsWaitToLeave"),
        ("OnDelete", "DOWN", "AllAsWanted"),
    ],
)
def test_a_roll_that_waits_names_the_workers_that_are_out(strategy: str, state: str, told: str) -> None:
    of = nodeset(replicas=2, updateStrategy={"type": strategy, "rollingUpdate": {"maxUnavailable": 1}})
    pods = [pod(0), pod(1, revision=OLD_REVISION)]
    seen = snapshot(pods, [record("gpu-0", state, "bad fan"), record("gpu-1", "MIXED")], of=of)
    condition = find(report(seen).conditions, RECONCILED)
    assert condition is not None
    assert condition.reason == told
    assert condition.message.endswith("not in service yet: gpu-0") == (told == "UpdateWaits")


@pytest.mark.parametrize("silent", [True, False])
def test_reasons_are_what_the_api_server_accepts(*, silent: bool) -> None:
    told = report(snapshot([pod(0)], None if silent else [record("gpu-0")], of=nodeset(replicas=0)))
    for condition in told.conditions:
        assert re.fullmatch(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", condition.reason)


@pytest.mark.parametrize("why", ["ErrImagePull", "ImagePullBackOff"])
def test_an_image_that_cannot_be_pulled_is_named_with_the_same_words_at_every_try(why: str) -> None:
    pods = [_waiting(pod(n, phase="Pending", waiting=why), "registry.example/slurmd:oops") for n in range(5)]
    (problem,) = not_starting(snapshot([*pods, pod(5)]))
    image = "image registry.example/slurmd:oops cannot be pulled"
    assert problem == Problem("Workers", "WorkersDoNotStart", f"gpu-0, gpu-1, gpu-2 and 2 more: {image}")
    told = find(report(snapshot(pods), problem).conditions, RECONCILED)
    assert told is not None
    assert (told.status, told.reason) == ("False", "WorkersDoNotStart")


def test_a_container_that_ends_at_once_is_told_and_one_that_is_being_made_is_not() -> None:
    pods = [pod(0, waiting="CrashLoopBackOff"), pod(1, phase="Pending", waiting="ContainerCreating")]
    (problem,) = not_starting(snapshot(pods))
    assert problem.message == "gpu-0: container slurmd does not start (CrashLoopBackOff)"
    assert not_starting(snapshot([pod(0, waiting="CrashLoopBackOff", terminating=True)])) == []


def test_half_of_the_workers_missing_for_long_is_no_whole_answer() -> None:
    seen = snapshot([pod(n) for n in range(4)], [record("gpu-0"), record("gpu-1")], absent_for=30)
    told = find(report(seen).conditions, SLURM_REACHABLE)
    assert told is not None
    assert (told.status, told.reason) == ("False", "IncompleteAnswer")
    just = snapshot([pod(n) for n in range(4)], [record("gpu-0"), record("gpu-1")], absent_for=29)
    assert find(report(just).conditions, SLURM_REACHABLE).status == "True"  # pyright: ignore[reportOptionalMemberAccess]


def _waiting(view: PodView, image: str) -> PodView:
    replace = msgspec.structs.replace
    containers = tuple(replace(each, image=image) for each in view.status.container_statuses)
    return replace(view, status=replace(view.status, container_statuses=containers))
