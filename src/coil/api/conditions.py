"""Conditions: find and set, without changing what is passed in."""

from collections.abc import Iterable, Sequence

import msgspec

from coil.api.meta import Condition


def find(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """The condition of this type, if any."""
    return next((condition for condition in conditions if condition.type == kind), None)


def with_condition(conditions: Sequence[Condition], wanted: Condition, now: str) -> list[Condition]:
    """The list with `wanted` set, others kept in order.

    The transition time stays while the status does; otherwise it is the wanted one's, or `now` (RFC 3339)
    when that is empty.
    """
    old = find(conditions, wanted.type)
    changed = old is None or old.status != wanted.status
    since = (wanted.last_transition_time or now) if changed or old is None else old.last_transition_time
    new = msgspec.structs.replace(wanted, last_transition_time=since)
    if old is None:
        return [*conditions, new]
    return [new if condition.type == wanted.type else condition for condition in conditions]


def without_condition(conditions: Iterable[Condition], kind: str) -> list[Condition]:
    """The list without conditions of this type."""
    return [condition for condition in conditions if condition.type != kind]
