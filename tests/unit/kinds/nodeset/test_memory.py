"""What a process did and its caches may not show yet (spec: nodeset 8.3)."""

from coil.kinds.nodeset.memory import Memory
from coil.kube.expectations import EXPIRY
from coil.support.objects import ObjectKey
from tests.support.workers import pod

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
