"""The steps of a pass over a kind with children: each makes or removes one child, in order.

A step that fails does not stop the following ones, except those that need it (spec: control-plane 11.2).
"""

from collections.abc import Sequence

import msgspec

from coil.build.errors import BuildError
from coil.kinds.children import ChildError, Children
from coil.kinds.record import Record
from coil.kinds.status import Problem
from coil.kube.resource import KubeObject
from coil.kube.views import ManifestView
from coil.support.objects import JsonObject


class Apply(msgspec.Struct, frozen=True, kw_only=True):
    """Make the child what `wanted` says; not before the step `needs` was done in this pass."""

    name: str
    wanted: JsonObject
    live: ManifestView | None
    needs: str = ""


class Remove(msgspec.Struct, frozen=True, kw_only=True):
    """Delete the child; None when there is none."""

    name: str
    live: ManifestView | None


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """The child cannot be made from what is there; the live one stays as it is.

    With `retry` the pass is worth repeating soon; otherwise a change of the world brings it back.
    """

    name: str
    reason: str
    message: str
    retry: bool = False


Step = Apply | Remove | Failed

WAITING = "Waiting"
"""Reason of a step that needs one that failed."""


class PassFailedError(Exception):
    """Steps failed in a way that trying again may cure."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"step {problem.step}: {problem.message}" for problem in problems))


async def run(children: Children, owner: KubeObject, steps: Sequence[Step]) -> list[Problem]:
    """Do all steps that can be done and give those that could not."""
    problems: list[Problem] = []
    for step in steps:
        problem = await _run_one(children, owner, step, {problem.step for problem in problems})
        if problem is not None:
            problems.append(problem)
    return problems


async def _run_one(children: Children, owner: KubeObject, step: Step, failed: set[str]) -> Problem | None:
    try:
        match step:
            case Failed():
                return Problem(step.name, step.reason, step.message, step.retry)
            case Apply(needs=needs) if needs in failed:
                return Problem(step.name, WAITING, f"waits for step {needs}")
            case Apply(wanted=wanted, live=live):
                await children.apply(owner, wanted, live)
            case Remove(live=live):
                await children.delete(owner, live)
    except BuildError as error:
        return Problem(step.name, "Invalid", str(error))
    except ChildError as error:
        return Problem(step.name, error.reason, str(error), error.retry)
    return None


def record_problems(record: Record, owner: KubeObject, problems: Sequence[Problem]) -> None:
    """One event for each step that failed (spec: control-plane 12); not for those that wait for it."""
    for problem in problems:
        if problem.reason != WAITING:
            note = f'Failed "{problem.step}" step: {problem.message}'
            record(owner, "Warning", "SyncFailed", "Sync", note)
