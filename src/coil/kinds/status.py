"""Write conditions: one request when one of ours changed, none otherwise (invariant I8).

Server-side apply names only our condition types, so those that a third party keeps in the same list stay
as they are (spec: control-plane 12).
"""

from collections.abc import Iterable, Sequence
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
    kept = (find(merged, condition.type) for condition in ours)
    return [condition for condition in kept if condition is not None]


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


async def write_conditions(  # noqa: PLR0913 -- one object, what its status holds and what it shall hold
    client: Client,
    resource: Resource[T],
    obj: T,
    live: Sequence[Condition],
    wanted: Iterable[Condition],
    now: datetime,
    *,
    members: StatusMembers = NO_MEMBERS,
) -> None:
    """Make the status of `obj` hold the wanted conditions; an object that is gone needs none.

    Args:
        client: of the API server.
        resource: the kind.
        obj: which object.
        live: its conditions, as the cache has them.
        wanted: our conditions.
        now: transition time of those that change.
        members: what else the status shall hold.

    Raises:
        ApiError: the server refused, or did not answer.
    """
    ours = list(wanted)
    conditions = changed(live, ours, now)
    if conditions is None and members.live == members.wanted:
        return
    if conditions is None:
        kept = (find(live, condition.type) for condition in ours)
        conditions = [condition for condition in kept if condition is not None]
    meta = obj.metadata
    body: JsonObject = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
        "status": {**members.wanted, "conditions": [wire(condition) for condition in conditions]},
    }
    try:
        await client.patch(
            resource,
            meta.name,
            body,
            meta.namespace,
            kind=PatchKind.APPLY,
            subresource="status",
            field_manager=FIELD_MANAGER,
            force=True,
        )
    except NotFound:
        return
