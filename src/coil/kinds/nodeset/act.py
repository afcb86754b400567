"""Do what a plan says. Every step is tried; what failed becomes a problem of the pass."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from coil.build.errors import BuildError
from coil.build.nodeset import PodTemplate
from coil.kinds.nodeset.actions import (
    Action,
    AdoptPod,
    CreatePod,
    DeletePod,
    OwnClaim,
    PatchConditions,
    PatchPod,
    ReleasePod,
    Remember,
)
from coil.kinds.nodeset.cordon import without_unmarked
from coil.kinds.nodeset.freshness import Freshness
from coil.kinds.nodeset.pods import Pods
from coil.kinds.nodeset.slurmwrites import SlurmWrites
from coil.kinds.status import Problem
from coil.kube.batches import slow_start
from coil.kube.errors import ApiError

A = TypeVar("A", bound=Action)

PODS = "NodeSetPods"
"""Step under which pods are made, changed and deleted, as events and conditions name it."""


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass acts through; no Slurm client or no template where the plan needs none."""

    pods: Pods
    freshness: Freshness
    slurm: SlurmWrites | None = None
    template: PodTemplate | None = None
    goes_on: bool = False
    """More pods are missing than one pass makes."""


async def perform(actions: Sequence[Action], means: Means) -> list[Problem]:
    """Do the actions, kind by kind; marks and owners of claims before drains before deletions.

    A node is drained only when its pod bears the mark: without it no later pass would know that the drain is
    the operator's, and why. What pods show of Slurm waits while one pass after the other makes pods.
    """
    pods = means.pods
    problems = [
        *await _each(actions, AdoptPod, pods.adopt),
        *await _each(actions, ReleasePod, pods.release),
        *await _each(actions, PatchPod, pods.patch),
    ]
    unmarked = {a.marks for a in actions if isinstance(a, PatchPod) and not pods.has_patched(a)}
    actions = without_unmarked(actions, unmarked)
    if means.slurm is not None:
        problems += await means.slurm.change_states(actions, means.freshness)
    problems += await _each(actions, OwnClaim, pods.own_claim)
    problems += await _each(actions, Remember, pods.remember)
    problems += await _removals(actions, pods, means.freshness)
    making = means.goes_on and means.template is not None
    if means.template is not None:
        refused = await _creations(actions, pods, means.template)
        making = making and not refused
        problems += refused
    if means.slurm is not None:
        pruned, kept = await means.slurm.prune(actions, means.freshness)
        pods.tell_pruned(pruned)
        problems += [*kept, *await means.slurm.describe(actions)]
    if not making:
        problems += await _each(actions, PatchConditions, pods.set_conditions)
    return problems


async def _each(
    actions: Sequence[Action], kind: type[A], call: Callable[[A], Awaitable[None]]
) -> list[Problem]:
    """Call for every action of a kind, in growing batches, until a batch has an error."""
    chosen = [action for action in actions if isinstance(action, kind)]
    batch = await slow_start(len(chosen), lambda index: call(chosen[index]))
    return [] if batch.error is None else [problem(PODS, batch.error)]


async def _removals(actions: Sequence[Action], pods: Pods, freshness: Freshness) -> list[Problem]:
    """Delete pods, not before it is written down what others said about them.

    What rests on Slurm's answer is done only while that is recent, which is looked at for each deletion.
    """

    async def delete(action: DeletePod) -> None:
        if not action.needs_fresh or freshness.holds():
            await pods.delete(action)

    waiting = {uid for a in actions if isinstance(a, Remember) and not pods.remembers(a) for uid in a.pods}
    deletions = [a for a in actions if isinstance(a, DeletePod) and a.uid not in waiting]
    pods.expect_deletions(deletions)
    batch = await slow_start(len(deletions), lambda index: delete(deletions[index]))
    pods.give_up_deletions(deletions)
    return [] if batch.error is None else [problem(PODS, batch.error)]


async def _creations(actions: Sequence[Action], pods: Pods, template: PodTemplate) -> list[Problem]:
    creations = [action for action in actions if isinstance(action, CreatePod)]
    pods.expect_creations(len(creations))
    batch = await slow_start(len(creations), lambda index: pods.create(creations[index], template))
    pods.give_up_creations(len(creations) - batch.succeeded)
    if batch.error is None or (isinstance(batch.error, ApiError) and batch.error.namespace_terminating):
        return []
    return [problem(PODS, batch.error)]


def problem(step: str, error: Exception) -> Problem:
    """How a failed request is told; anything that is no refusal of a server is a fault of coil and raised."""
    match error:
        case ApiError(reason=reason, message=message):
            return Problem(step, reason or type(error).__name__, message or str(error), retry=True)
        case BuildError():
            return Problem(step, "Invalid", str(error))
        case _:
            raise error
