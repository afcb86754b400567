"""What a process did and its caches may not show yet (spec: nodeset 8.3); how long a node is missing."""

import pytest

from coil.kinds.nodeset.joining import join
from coil.kinds.nodeset.memory import HURRY_S, Memory
from coil.kinds.nodeset.snapshot import Known, Slurm
from coil.kube.expectations import EXPIRY
from coil.slurm.wire import Reservation, ReservationUpdate
from coil.support.objects import ObjectKey
from tests.support.workers import NOW, SILENT, host, pod, record, view

ANSWER = Known(observed_at=NOW, fresh=True, node_count=1)
DOUBTFUL = Known(observed_at=NOW, fresh=True, node_count=1, doubt="a node could not be read")
KEY = ObjectKey("slurm", "gpu")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_patch_holds_the_next_pass_back_until_the_cache_shows_another_version() -> None:
    memory = Memory(Clock())
    memory.changed(KEY, "uid-gpu-0", "1", "2")
    assert not memory.settled(KEY, [pod(0, version="1")])
    assert memory.settled(KEY, [pod(0, version="2")])
    assert memory.settled(KEY, [pod(0, version="1")]), "once seen, it is forgotten"


def test_two_patches_in_a_row() -> None:
    memory = Memory(Clock())
    memory.changed(KEY, "uid-gpu-0", "1", "2")
    memory.changed(KEY, "uid-gpu-0", "2", "3")
    assert not memory.settled(KEY, [pod(0, version="1")])
    assert not memory.settled(KEY, [pod(0, version="2")])
    assert memory.settled(KEY, [pod(0, version="3")])


def test_a_patch_that_changed_nothing_is_not_waited_for() -> None:
    memory = Memory(Clock())
    memory.changed(KEY, "uid-gpu-0", "1", "1")
    assert memory.settled(KEY, [pod(0, version="1")])


def test_a_pod_that_is_gone_is_not_waited_for() -> None:
    memory = Memory(Clock())
    memory.changed(KEY, "uid-gpu-0", "1", "2")
    assert memory.settled(KEY, [pod(0, uid="another", version="1")])


def test_a_lost_event_does_not_hold_back_for_ever() -> None:
    clock = Clock()
    memory = Memory(clock)
    memory.changed(KEY, "uid-gpu-0", "1", "2")
    clock.now = EXPIRY + 1
    assert memory.settled(KEY, [pod(0, version="1")])


def test_expectations_hold_back_too() -> None:
    memory = Memory(Clock())
    memory.expectations.expect_creations(KEY, 1)
    assert not memory.settled(KEY, [])
    memory.forget(KEY)
    assert memory.settled(KEY, [])


def test_what_is_under_way_is_told_by_pod() -> None:
    clock = Clock()
    memory = Memory(clock)
    memory.changed(KEY, "uid-gpu-0", "1", "2")
    memory.expectations.expect_deletions(KEY, [ObjectKey("slurm", "gpu-1")])
    cached = [pod(0, version="1"), pod(1), pod(2)]
    assert memory.under_way(KEY, cached) == {"uid-gpu-0", "uid-gpu-1"}
    assert memory.under_way(KEY, [pod(0, version="2")]) == set()
    memory.expectations.deletion_observed(KEY, ObjectKey("slurm", "gpu-1"))
    assert memory.under_way(KEY, cached) == {"uid-gpu-0"}


def test_a_deletion_whose_event_was_lost_is_not_under_way_for_ever() -> None:
    clock = Clock()
    memory = Memory(clock)
    memory.expectations.expect_deletions(KEY, [ObjectKey("slurm", "gpu-1")])
    clock.now = EXPIRY + 1
    assert memory.under_way(KEY, [pod(1)]) == set()


def test_a_pass_follows_at_once_only_once_in_a_while() -> None:
    """One that would follow sooner follows when it may."""
    clock = Clock()
    memory = Memory(clock)
    assert memory.hurry_in(KEY) == 0
    clock.now = HURRY_S / 4
    assert memory.hurry_in(KEY) == HURRY_S * 3 / 4
    assert memory.hurry_in(ObjectKey("slurm", "cpu")) == 0, "each NodeSet for itself"
    clock.now = HURRY_S / 2
    assert memory.hurry_in(KEY) == HURRY_S / 2, "one is due already"
    clock.now = HURRY_S * 3
    assert memory.hurry_in(KEY) == 0


def absent_for(
    memory: Memory, slurm: Slurm = ANSWER, registered: str = "other", *, ready: bool = True
) -> float:
    seen = join([pod(0, ready=ready)], host, view([record(registered)]))
    (worker,) = memory.with_absences(KEY, seen, slurm)
    return worker.absent_for


def test_absence_counts_from_the_first_answer_without_the_node() -> None:
    clock = Clock()
    memory = Memory(clock)
    assert absent_for(memory) == 0.0
    clock.now = 40.0
    assert absent_for(memory) == 40.0


@pytest.mark.parametrize("between", [SILENT, DOUBTFUL])
def test_silence_and_doubts_begin_the_count_anew(between: Slurm) -> None:
    clock = Clock()
    memory = Memory(clock)
    absent_for(memory)
    clock.now = 40.0
    assert absent_for(memory, between) == 0.0
    clock.now = 50.0
    assert absent_for(memory) == 0.0


def test_presence_and_readiness_begin_the_count_anew() -> None:
    clock = Clock()
    memory = Memory(clock)
    absent_for(memory, ready=False)
    clock.now = 40.0
    assert absent_for(memory, ready=False) == 40.0
    assert absent_for(memory) == 0.0
    clock.now = 80.0
    assert absent_for(memory) == 40.0
    absent_for(memory, registered="gpu-0")
    assert absent_for(memory) == 0.0


def test_a_new_process_believes_no_absence() -> None:
    clock = Clock()
    absent_for(Memory(clock))
    clock.now = 600.0
    assert absent_for(Memory(clock)) == 0.0


def test_a_reservation_is_not_written_twice_because_slurm_tells_it_otherwise() -> None:
    memory = Memory(Clock())
    put = ReservationUpdate(name="maint", flags=["MAINT"])
    alias = Reservation(name="maint", flags=("MAINT", "SPEC"))
    memory.reserved(KEY, put, alias)
    assert memory.is_reserved(KEY, put, alias)
    assert not memory.is_reserved(KEY, put, None), "somebody removed it"
    assert not memory.is_reserved(KEY, put, Reservation(name="maint")), "somebody changed it"
    assert not memory.is_reserved(KEY, ReservationUpdate(name="maint", flags=["DAILY"]), alias)
    assert not memory.is_reserved(KEY, None, alias)
    memory.reserved(KEY, put, None)
    assert memory.is_reserved(KEY, put, alias), "just made"
    assert not memory.is_reserved(KEY, put, Reservation(name="maint")), "and then changed"
    memory.forget(KEY)
    assert not memory.is_reserved(KEY, put, alias)


def test_written_topologies_are_remembered_as_long_as_their_pods() -> None:
    memory = Memory(Clock())
    both = join([pod(0), pod(1)], host, view([record("gpu-0"), record("gpu-1")]))
    memory.place(KEY, both, {"gpu-0": "t"})
    memory.place(KEY, both, {"gpu-1": "t"})
    assert memory.placed(KEY) == {"uid-gpu-0": ("t", ""), "uid-gpu-1": ("t", "")}
    memory.place(KEY, both[1:], {})
    assert memory.placed(KEY) == {"uid-gpu-1": ("t", "")}
    memory.forget(KEY)
    assert memory.placed(KEY) == {}
