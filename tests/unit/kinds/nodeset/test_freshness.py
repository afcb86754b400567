"""What rests on Slurm's answer is done while that is recent, or not at all (invariants I1, I2)."""

from typing import Any, cast

import pytest

from coil.kinds.nodeset.act import Means, perform
from coil.kinds.nodeset.actions import Action, DeletePod, Drain, Prune, Undrain
from coil.kinds.nodeset.freshness import ACT_WITHIN_S, Freshness
from coil.kinds.nodeset.pods import Pods
from coil.kinds.nodeset.slurmwrites import SlurmWrites
from coil.slurm.client import SlurmClient
from coil.slurm.wire import JobsReply


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Hands(Pods):
    """Stands where pods and the Slurm client are written; every request takes a while."""

    def __init__(self, clock: Clock, takes: float) -> None:
        self.done: list[str] = []
        self._clock = clock  # and nothing of what real pods need
        self._takes = takes

    def _do(self, what: str) -> None:
        self.done.append(what)
        self._clock.now += self._takes

    async def delete(self, action: DeletePod) -> None:
        self._do(action.name)

    async def update_nodes(self, names: Any, **_values: Any) -> None:
        self._do(",".join(names))

    async def delete_node(self, name: str) -> None:
        self._do(name)

    async def jobs(self) -> JobsReply:
        return JobsReply(jobs=(), last_update=1)

    def expect_deletions(self, _deletions: Any) -> None: ...

    def give_up_deletions(self, _deletions: Any) -> None: ...

    def tell_pruned(self, _names: Any) -> None: ...


def deletion(name: str, *, needs_fresh: bool = True) -> DeletePod:
    return DeletePod(name=name, uid=name, why="", needs_fresh=needs_fresh)


ACTIONS: list[Action] = [
    Undrain(nodes=("undrained",)),
    Drain(nodes=("drained",), reason="slurm-operator: x"),
    *(deletion(f"pod-{number}") for number in range(3)),
    deletion("ended", needs_fresh=False),
    Prune(nodes=("pruned",)),
]


async def done(takes: float, *, late: float = 0.0, same: bool = True) -> tuple[list[str], bool]:
    clock = Clock()
    freshness = Freshness(lambda: same, clock)
    clock.now += late
    hands = Hands(clock, takes)
    slurm = SlurmWrites(cast("SlurmClient", hands))
    await perform(ACTIONS, Means(pods=hands, freshness=freshness, slurm=slurm))
    return hands.done, freshness.ran_out


@pytest.mark.asyncio
async def test_all_is_done_at_once() -> None:
    everything = ["undrained", "drained", "pod-0", "pod-1", "pod-2", "ended", "pruned"]
    assert await done(0.01) == (everything, False)


@pytest.mark.asyncio
@pytest.mark.parametrize(("late", "same"), [(ACT_WITHIN_S + 0.1, True), (0.0, False)])
async def test_nothing_is_done_on_an_old_answer_or_one_of_another_cluster(late: float, *, same: bool) -> None:
    assert await done(0.01, late=late, same=same) == (["ended"], True)


@pytest.mark.asyncio
async def test_each_deletion_is_judged_when_it_is_made() -> None:
    assert await done(0.9) == (["undrained", "drained", "pod-0", "pod-1", "ended"], True)
