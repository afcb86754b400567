"""Write conditions: one request when one of ours changed, none otherwise (invariant I8).

Server-side apply names only our condition types, so those that a third party keeps in the same list stay
as they are (spec: control-plane 12).
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Literal, TypeVar

import msgspec

from coil.api.conditions import find, with_condition
from coil.api.meta import Condition, JsonObject
from coil.kube.client import Client, PatchKind
from coil.kube.errors import NotFound
from coil.kube.resource import KubeObject, Resource
from coil.support.clock import rfc3339

T = TypeVar("T", bound=KubeObject)

FIELD_MANAGER = "coil-status"

RECONCILED = "Reconciled"
"""Every child object is as wanted."""
AVAILABLE = "Available"
"""The daemon does its work."""
SLURM_REACHABLE = "SlurmReachable"
"""The operator gets answers from Slurm."""

Truth = Literal["True", "False", "Unknown"]


class Problem(msgspec.Struct, frozen=True, gc=False):
    """A step that could not be done: `reason` is CamelCase, `message` is for people.

    `retry` says that trying again may help; otherwise only a change of the world does, which brings the
    object back by itself.
    """

    step: str
    reason: str
    message: str
    retry: bool = False


def condition(obj: KubeObject, kind: str, status: Truth, reason: str, message: str) -> Condition:
    """A condition derived from this generation of the object."""
    generation = obj.metadata.generation
    return Condition(type=kind, status=status, reason=reason, message=message, observed_generation=generation)


def reconciled(obj: KubeObject, problems: Sequence[Problem]) -> Condition:
    """True without problems; otherwise the first one's reason and all messages."""
    if not problems:
        return condition(obj, RECONCILED, "True", "AllAsWanted", "all objects are as wanted")
    message = "; ".join(f"{problem.step}: {problem.message}" for problem in problems)
    return condition(obj, RECONCILED, "False", problems[0].reason, message)


def is_news(live: Sequence[Condition], wanted: Condition) -> bool:
    """Whether the condition says something that the live list does not say yet."""
    old = find(live, wanted.type)
    return old is None or (old.status, old.reason, old.message) != (
        wanted.status,
        wanted.reason,
        wanted.message,
    )


def changed(live: Sequence[Condition], wanted: Iterable[Condition], now: datetime) -> list[Condition] | None:
    """The wanted conditions with their transition times; None when the live list has them all already."""
    merged, ours = list(live), list(wanted)
    for condition in ours:
        merged = with_condition(merged, condition, rfc3339(now))
    if merged == list(live):
        return None
    return _kept(merged, ours)


def _kept(conditions: Sequence[Condition], ours: Iterable[Condition]) -> list[Condition]:
    """Of a list of conditions those of our types."""
    found = (find(conditions, condition.type) for condition in ours)
    return [condition for condition in found if condition is not None]


def wire(told: Condition) -> JsonObject:
    """With every member: those that equal a Struct's default are required on the wire all the same."""
    return {
        "type": told.type,
        "status": told.status,
        "reason": told.reason,
        "message": told.message,
        "lastTransitionTime": told.last_transition_time,
        "observedGeneration": told.observed_generation,
    }


class StatusMembers(msgspec.Struct, frozen=True):
    """Members of a status besides its conditions, by their wire names: as they are, and as they shall be.

    A kind names the same ones in each pass: a member left out would be taken away again.
    """

    live: JsonObject
    wanted: JsonObject


NO_MEMBERS = StatusMembers({}, {})


def status_change(
    live: Sequence[Condition], wanted: Iterable[Condition], now: datetime, members: StatusMembers = NO_MEMBERS
) -> JsonObject | None:
    """The part of a status that is ours, as it shall be; None when it is so already.

    Args:
        live: the conditions, as the cache has them.
        wanted: our conditions.
        now: transition time of those that change.
        members: what else the status shall hold.
    """
    ours = list(wanted)
    conditions = changed(live, ours, now)
    if conditions is None:
        if members.live == members.wanted:
            return None
        conditions = _kept(live, ours)
    return {**members.wanted, "conditions": [wire(condition) for condition in conditions]}


async def write_status(
    client: Client, resource: Resource[T], obj: T, status: JsonObject | None, manager: str = FIELD_MANAGER
) -> None:
    """Apply what `status_change` gave; an object that is gone needs no status.

    What the field manager applied before and does not name now is taken away.

    Raises:
        ApiError: the server refused, or did not answer.
    """
    if status is None:
        return
    meta = obj.metadata
    body: JsonObject = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
        "status": status,
    }
    with suppress(NotFound):
        await client.patch(
            resource,
            meta.name,
            body,
            meta.namespace,
            kind=PatchKind.APPLY,
            subresource="status",
            field_manager=manager,
            force=True,
        )
