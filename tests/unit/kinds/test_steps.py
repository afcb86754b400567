"""Claims about the order of steps and about what a failure stops."""

from typing import cast

import pytest

from coil.api.controller import Controller
from coil.api.meta import ObjectMeta
from coil.build.errors import BuildError
from coil.kinds.children import Child, ChildError, Children
from coil.kinds.status import Problem
from coil.kinds.steps import Apply, Failed, PassFailedError, Remove, record_problems, run
from coil.kube import core
from coil.kube.errors import Invalid, Unavailable
from coil.kube.events import ObjectRef
from coil.kube.resource import KubeObject
from coil.kube.views import ManifestView
from coil.support.objects import JsonObject

OWNER = Controller(metadata=ObjectMeta(name="alba", namespace="ns"))


class Writes:
    """Takes the place of Children; fails for what it was told to."""

    def __init__(self, **failures: Exception) -> None:
        self.done: list[str] = []
        self._failures = failures

    async def apply(self, owner: KubeObject, wanted: JsonObject, live: ManifestView | None) -> None:
        del live
        assert owner is OWNER
        if error := self._failures.get(wanted["name"]):
            raise error
        self.done.append(f"apply {wanted['name']}")

    async def delete(self, owner: KubeObject, live: ManifestView | None) -> None:
        del owner, live
        self.done.append("delete")


def step(name: str, needs: str = "") -> Apply:
    return Apply(name=name, wanted={"name": name}, live=None, needs=needs)


async def tried(writes: Writes, *steps: Apply | Remove | Failed) -> list[Problem]:
    return await run(cast("Children", writes), OWNER, steps)


def refusal(error: Invalid | Unavailable) -> ChildError:
    return ChildError("creating", Child(core.SERVICES, "ns", "x"), error)


@pytest.mark.asyncio
async def test_steps_are_done_in_order() -> None:
    writes = Writes()
    assert await tried(writes, step("a"), Remove(name="b", live=None), step("c", needs="a")) == []
    assert writes.done == ["apply a", "delete", "apply c"]


@pytest.mark.asyncio
async def test_a_failing_step_stops_only_those_that_need_it() -> None:
    writes = Writes(a=refusal(Unavailable(503, "ServiceUnavailable", "later")))
    problems = await tried(writes, step("a"), step("b", needs="a"), step("c"))
    assert problems == [
        Problem("a", "ServiceUnavailable", "error creating ns/x: later", retry=True),
        Problem("b", "Waiting", "waits for step a"),
    ]
    assert writes.done == ["apply c"]


@pytest.mark.asyncio
async def test_only_what_trying_again_may_cure_is_tried_again_soon() -> None:
    writes = Writes(a=refusal(Invalid(422, "Invalid", "no")), b=BuildError("spec.x", "is odd"))
    problems = await tried(writes, step("a"), step("b"), Failed(name="c", reason="R", message="m"))
    assert [(problem.reason, problem.retry) for problem in problems] == [
        ("Invalid", False),
        ("Invalid", False),
        ("R", False),
    ]


def test_each_failure_makes_an_event_and_those_that_wait_for_it_none() -> None:
    notes: list[str] = []

    def record(
        regarding: KubeObject,
        type_: str,
        reason: str,
        action: str,
        note: str,
        related: ObjectRef | None = None,
    ) -> None:
        assert (regarding, related) == (OWNER, None)
        notes.append(f"{type_} {reason} {action} {note}")

    record_problems(record, OWNER, [Problem("Config", "X", "gone"), Problem("StatefulSet", "Waiting", "w")])
    assert notes == ['Warning SyncFailed Sync Failed "Config" step: gone']


def test_the_error_of_a_pass_names_the_steps() -> None:
    assert str(PassFailedError([Problem("a", "X", "y"), Problem("b", "X", "z")])) == "step a: y; step b: z"
