"""The Slurm reservation in which a ScheduledUpdate replaces workers (spec: nodeset 22). Pure.

The condition `ReservationCreated` remembers, as its transition time, the start for which the reservation was
made: also after it is over, so that it is not made again for the same start (spec: nodeset 30, Q21 and Q22).
The finalizer comes before the reservation and goes after it: no reservation outlives its NodeSet.
"""

from collections.abc import Collection, Sequence

import msgspec

from coil.api import keys, names
from coil.api.conditions import find, without_condition
from coil.api.meta import Condition
from coil.api.nodeset import NodeSet, ScheduledUpdate
from coil.kinds.nodeset.times import seconds, text
from coil.kinds.status import condition
from coil.slurm.wire import Reservation, ReservationUpdate, number
from coil.support.hostlist import compress, expand

CREATED = "ReservationCreated"
OWN_FLAGS = frozenset({"MAINT", "IGNORE_JOBS"})
RECURRING = frozenset({"HOURLY", "DAILY", "WEEKLY", "WEEKEND", "WEEKDAY"})
FORCE_START = "FORCE_START"
_BY_SLURM = frozenset({"SPEC_NODES", "ALL_NODES", "PART_NODES", FORCE_START})
"""Flags that Slurm adds by itself, or need not tell back."""


class Maintenance(msgspec.Struct, frozen=True, kw_only=True):
    """What to do about the reservation."""

    put: ReservationUpdate | None = None
    remove: str = ""
    """Name of the reservation to remove."""
    finalizer: bool | None = None
    """Add it or take it off; None leaves it."""


def concerns(nodeset: NodeSet) -> bool:
    """Whether there is, or may be, a reservation to look after; otherwise Slurm is not asked."""
    return _scheduled(nodeset) is not None or _marked(nodeset)


def plan_maintenance(
    nodeset: NodeSet, nodes: Collection[str], held: Reservation | None, now: float
) -> Maintenance:
    """Decide; `nodes` are the Slurm nodes of the NodeSet, `held` its reservation in Slurm.

    Raises:
        ValueError: the duration is none.
    """
    scheduled = _scheduled(nodeset)
    if scheduled is None:
        name = names.reservation(nodeset.metadata.name) if held is not None else ""
        return Maintenance(remove=name, finalizer=False if _marked(nodeset) else None)
    if not nodes:
        return Maintenance()
    if not _marked(nodeset):
        return Maintenance(finalizer=True)
    if held is None:
        return Maintenance(put=_new(nodeset, scheduled, nodes, now))
    return Maintenance(put=_changed(nodeset, scheduled, nodes, held, now))


def with_reservation(
    nodeset: NodeSet, conditions: Sequence[Condition], held: Reservation | None
) -> list[Condition]:
    """The conditions with what is known of the reservation."""
    scheduled, old = _scheduled(nodeset), find(conditions, CREATED)
    if scheduled is None:
        return without_condition(conditions, CREATED)
    start = seconds(scheduled.start_time)
    if held is not None:
        settled = held.start_time.number == int(start) or _advanced(scheduled, held, start)
        return _set(nodeset, conditions, "True", "Created", start) if settled else list(conditions)
    if old is not None and old.status == "True":
        return _set(nodeset, conditions, "False", "NotExists", seconds(old.last_transition_time))
    return list(conditions)


def _scheduled(nodeset: NodeSet) -> ScheduledUpdate | None:
    strategy = nodeset.spec.update_strategy
    scheduled = strategy.scheduled_update
    if strategy.type != "ScheduledUpdate" or scheduled is None or nodeset.spec.replicas <= 0:
        return None
    return scheduled if scheduled.start_time else None


def _marked(nodeset: NodeSet) -> bool:
    return keys.FINALIZER_RESERVATION in nodeset.metadata.finalizers


def _flags(scheduled: ScheduledUpdate) -> frozenset[str]:
    return OWN_FLAGS | {flag.upper() for flag in scheduled.flags}


def _made_for(nodeset: NodeSet) -> float | None:
    """The start for which a reservation was made before."""
    old = find(nodeset.status.conditions, CREATED)
    return None if old is None else seconds(old.last_transition_time)


def _new(
    nodeset: NodeSet, scheduled: ScheduledUpdate, nodes: Collection[str], now: float
) -> ReservationUpdate | None:
    """A start in the past is never made silently, and none is made twice."""
    start = seconds(scheduled.start_time)
    if _made_for(nodeset) == start or (start < now and FORCE_START not in _flags(scheduled)):
        return None
    return _desired(nodeset, scheduled, nodes, start)


def _changed(
    nodeset: NodeSet, scheduled: ScheduledUpdate, nodes: Collection[str], held: Reservation, now: float
) -> ReservationUpdate | None:
    wanted = seconds(scheduled.start_time)
    start = held.start_time.number
    moved = _made_for(nodeset) == wanted and _advanced(scheduled, held, wanted)
    begin = float(start) if moved else wanted
    other_nodes = set(expand(held.node_list)) != set(nodes)
    if start < now < held.end_time.number:
        return _same_but_nodes(held, nodes) if other_nodes else None
    others = (
        frozenset(held.flags) - _BY_SLURM != _flags(scheduled) - _BY_SLURM or held.users != keys.SLURM_USER
    )
    if not other_nodes and not others and start == int(begin):
        return None
    return _desired(nodeset, scheduled, nodes, begin)


def _advanced(scheduled: ScheduledUpdate, held: Reservation, start: float) -> bool:
    """Slurm moved a recurring reservation on to its next turn."""
    recurring = bool(RECURRING & set(held.flags)) and bool(RECURRING & _flags(scheduled))
    return recurring and held.start_time.number > start


def _desired(
    nodeset: NodeSet, scheduled: ScheduledUpdate, nodes: Collection[str], start: float
) -> ReservationUpdate:
    return ReservationUpdate(
        name=names.reservation(nodeset.metadata.name),
        start_time=number(int(start)),
        duration=number(int(scheduled.duration_s // 60)),
        flags=sorted(_flags(scheduled)),
        users=[keys.SLURM_USER],
        node_list=[compress(nodes)],
    )


def _same_but_nodes(held: Reservation, nodes: Collection[str]) -> ReservationUpdate:
    return ReservationUpdate(
        name=held.name,
        start_time=held.start_time,
        end_time=held.end_time,
        flags=sorted(held.flags),
        users=[held.users],
        node_list=[compress(nodes)],
    )


def _set(
    nodeset: NodeSet, conditions: Sequence[Condition], status: str, reason: str, start: float
) -> list[Condition]:
    """The transition time is the start, whatever the status was before."""
    truth = "True" if status == "True" else "False"
    wanted = condition(nodeset, CREATED, truth, reason, "")
    new = msgspec.structs.replace(wanted, last_transition_time=text(start))
    old = find(conditions, CREATED)
    if old is None:
        return [*conditions, new]
    same = (old.status, old.reason, old.last_transition_time) == (
        new.status,
        new.reason,
        new.last_transition_time,
    )
    return [c if c.type != CREATED or same else new for c in conditions]
