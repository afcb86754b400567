"""The reservation of a ScheduledUpdate (spec: nodeset 22, 32; 30, Q20 to Q22)."""

from typing import Any

import msgspec
import pytest

from coil.api import keys
from coil.api.conditions import find
from coil.api.meta import Condition
from coil.api.nodeset import NodeSet
from coil.kinds.nodeset.reservation import (
    CREATED,
    Maintenance,
    concerns,
    plan_maintenance,
    with_reservation,
)
from coil.kinds.nodeset.times import text
from coil.slurm.wire import Reservation, ReservationUpdate, number
from tests.support.workers import NOW, nodeset

NODES = ["gpu-0", "gpu-1"]
NAME = "SlurmOperatorMaint-gpu"
SOON = NOW + 3600


def scheduled(
    start: float = SOON, *flags: str, marked: bool = True, made_for: float | None = None, **spec: Any
) -> NodeSet:
    update = {"startTime": text(start), "duration": "90m", "flags": list(flags)}
    found = nodeset(updateStrategy={"type": "ScheduledUpdate", "scheduledUpdate": update}, **spec)
    meta = msgspec.structs.replace(found.metadata, finalizers=[keys.FINALIZER_RESERVATION] if marked else [])
    conditions = [] if made_for is None else [told("True", made_for)]
    status = msgspec.structs.replace(found.status, conditions=conditions)
    return msgspec.structs.replace(found, metadata=meta, status=status)


def told(status: str, start: float) -> Condition:
    document = {"type": CREATED, "status": status, "reason": "Created", "lastTransitionTime": text(start)}
    return msgspec.convert(document, Condition)


def held(start: float = SOON, **members: Any) -> Reservation:
    given = {"flags": ("MAINT", "IGNORE_JOBS", "SPEC_NODES"), "node_list": "gpu-[0-1]", "users": "slurm"}
    wanted = {**given, **members}
    return Reservation(name=NAME, start_time=number(int(start)), end_time=number(int(start) + 5400), **wanted)


def desired(start: float = SOON, *flags: str, nodes: str = "gpu-[0-1]") -> ReservationUpdate:
    return ReservationUpdate(
        name=NAME,
        start_time=number(int(start)),
        duration=number(90),
        flags=sorted({"MAINT", "IGNORE_JOBS", *flags}),
        users=["slurm"],
        node_list=[nodes],
    )


def test_slurm_is_asked_only_where_there_may_be_a_reservation() -> None:
    assert not concerns(nodeset())
    assert concerns(scheduled(marked=False))
    left = msgspec.structs.replace(nodeset().metadata, finalizers=[keys.FINALIZER_RESERVATION])
    assert concerns(msgspec.structs.replace(nodeset(), metadata=left))
    assert not concerns(scheduled(replicas=0, marked=False))


def test_the_mark_comes_before_the_reservation() -> None:
    assert plan_maintenance(scheduled(marked=False), NODES, None, NOW) == Maintenance(finalizer=True)
    assert plan_maintenance(scheduled(), NODES, None, NOW) == Maintenance(put=desired())


def test_nothing_is_reserved_before_workers_have_registered() -> None:
    assert plan_maintenance(scheduled(marked=False), [], None, NOW) == Maintenance()


def test_flags_are_upper_case_and_distinct() -> None:
    plan = plan_maintenance(scheduled(SOON, "daily", "maint"), NODES, None, NOW)
    assert plan.put == desired(SOON, "DAILY")


def test_a_start_in_the_past_is_not_made_unless_forced() -> None:
    assert plan_maintenance(scheduled(NOW - 60), NODES, None, NOW).put is None
    forced = scheduled(NOW - 60, "FORCE_START")
    assert plan_maintenance(forced, NODES, None, NOW).put == desired(NOW - 60, "FORCE_START")


def test_a_reservation_that_is_over_is_not_made_again_for_the_same_start() -> None:
    over = scheduled(NOW - 60, "FORCE_START", made_for=NOW - 60)
    assert plan_maintenance(over, NODES, None, NOW) == Maintenance()
    moved = scheduled(SOON, made_for=NOW - 60)
    assert plan_maintenance(moved, NODES, None, NOW).put == desired()


def test_an_equal_reservation_is_left_alone() -> None:
    assert plan_maintenance(scheduled(made_for=SOON), NODES, held(), NOW) == Maintenance()


@pytest.mark.parametrize(
    "live",
    [
        held(node_list="gpu-0"),
        held(flags=("MAINT",)),
        held(flags=("MAINT", "IGNORE_JOBS", "DAILY")),
        held(users="root"),
        held(SOON + 600),
    ],
)
def test_another_one_is_changed(live: Reservation) -> None:
    assert plan_maintenance(scheduled(made_for=SOON), NODES, live, NOW).put == desired()


def test_a_new_start_is_written_once() -> None:
    later = scheduled(SOON + 600, made_for=SOON)
    assert plan_maintenance(later, NODES, held(), NOW).put == desired(SOON + 600)
    assert plan_maintenance(later, NODES, held(SOON + 600), NOW) == Maintenance()


def test_slurm_moves_a_recurring_reservation_on() -> None:
    daily = ("MAINT", "IGNORE_JOBS", "DAILY", "SPEC_NODES")
    next_turn = held(SOON + 86400, flags=daily)
    assert plan_maintenance(scheduled(SOON, "DAILY", made_for=SOON), NODES, next_turn, NOW) == Maintenance()
    moved = scheduled(SOON + 600, "DAILY", made_for=SOON)
    assert plan_maintenance(moved, NODES, next_turn, NOW).put == desired(SOON + 600, "DAILY")


def test_while_it_runs_only_its_nodes_are_changed() -> None:
    running = held(NOW - 60, node_list="gpu-0")
    put = plan_maintenance(scheduled(NOW - 60, made_for=NOW - 60), NODES, running, NOW).put
    assert put is not None
    assert (put.start_time, put.end_time, put.duration) == (running.start_time, running.end_time, None)
    assert put.node_list == ["gpu-[0-1]"]
    other_flags = held(NOW - 60, flags=("MAINT",))
    assert plan_maintenance(scheduled(NOW - 60, made_for=NOW - 60), NODES, other_flags, NOW) == Maintenance()


def test_another_strategy_removes_it() -> None:
    meta = scheduled().metadata
    rolling = msgspec.structs.replace(nodeset(), metadata=meta)
    assert plan_maintenance(rolling, NODES, held(), NOW) == Maintenance(remove=NAME, finalizer=False)
    assert plan_maintenance(rolling, NODES, None, NOW) == Maintenance(finalizer=False)


def test_the_condition_remembers_the_start() -> None:
    of = scheduled()
    made = with_reservation(of, [], held())
    condition = find(made, CREATED)
    assert condition is not None
    assert (condition.status, condition.reason, condition.last_transition_time) == (
        "True",
        "Created",
        text(SOON),
    )
    assert with_reservation(of, made, held()) == made
    over = find(with_reservation(of, made, None), CREATED)
    assert over is not None
    assert (over.status, over.reason, over.last_transition_time) == ("False", "NotExists", text(SOON))
    again = with_reservation(of, with_reservation(of, made, None), None)
    assert find(again, CREATED) == over


def test_the_condition_follows_a_new_start_once_slurm_has_it() -> None:
    later = scheduled(SOON + 600, made_for=SOON)
    before = [told("True", SOON)]
    assert with_reservation(later, before, held()) == before
    after = find(with_reservation(later, before, held(SOON + 600)), CREATED)
    assert after is not None
    assert after.last_transition_time == text(SOON + 600)


def test_the_condition_goes_with_the_strategy() -> None:
    assert with_reservation(nodeset(), [told("True", SOON)], None) == []
    assert with_reservation(scheduled(replicas=0), [told("True", SOON)], held()) == []
    assert with_reservation(scheduled(), [], None) == []
