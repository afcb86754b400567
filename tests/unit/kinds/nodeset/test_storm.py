"""Hundreds of workers that register at a slurmctld which takes few at a time (field case LRG-07)."""

from collections.abc import Iterable

from coil.kinds.nodeset.actions import DeletePod
from coil.kinds.nodeset.joining import join
from coil.kinds.nodeset.memory import Memory
from coil.kinds.nodeset.plan import make_plan
from coil.kinds.nodeset.snapshot import Known, Snapshot, mostly_absent
from coil.kinds.nodeset.times import text
from tests.support.workers import NOW, REVISION, host, nodeset, pod, record, view

ALIVE = host()
COUNT = 800
KEPT = 100
"""Workers that were there before: the list of nodes is never empty."""


def passes(rate: int, moments: Iterable[int]) -> list[tuple[int, int]]:
    """Passes while `rate` workers register per second: when, in seconds, and how many pods each deletes."""
    start, memory, given_up = NOW, Memory(lambda: clock), list[tuple[int, int]]()
    of = nodeset(replicas=COUNT + KEPT)
    old = [pod(number) for number in range(KEPT)]
    # All at once, and ready before slurmctld has taken them: the worst there can be.
    new = [
        pod(KEPT + number, created=text(start), ready_since=text(start), uid=f"uid-new-{number}")
        for number in range(COUNT)
    ]
    for second in moments:
        clock = start + second
        known = KEPT + min(rate * second, COUNT)
        seen = view([record(f"gpu-{number}") for number in range(known)], at=clock)
        slurm = Known(observed_at=clock, fresh=True, node_count=known)
        joined = memory.with_absences(of.metadata.key, join([*old, *new], lambda _: ALIVE, seen), slurm)
        snapshot = Snapshot(
            nodeset=of,
            revision=REVISION,
            workers=joined,
            mostly_absent=mostly_absent(joined),
            slurm=slurm,
        )
        deleted = sum(isinstance(action, DeletePod) for action in make_plan(snapshot, clock).actions)
        if deleted:
            given_up.append((second, deleted))
    return given_up


def test_workers_that_wait_for_their_turn_to_register_are_left_alone() -> None:
    """20 a second take 40 s."""
    assert passes(20, range(0, 60, 5)) == []


def test_of_workers_that_never_register_few_are_tried_anew() -> None:
    """As many as `maxUnavailable` allows, a quarter, once they have had ten minutes."""
    assert passes(0, [0, 300, 599, 600]) == [(600, (COUNT + KEPT) // 4)]
