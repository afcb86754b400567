"""Which workers of an old revision may be given up now (spec: nodeset 23, invariant I4)."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from coil.api import keys, names
from coil.kinds.nodeset.drain import Cause, own_cause
from coil.kinds.nodeset.ownership import is_of_machine
from coil.kinds.nodeset.scaling import Scaling
from coil.kinds.nodeset.snapshot import Known, Snapshot, Worker
from coil.kinds.nodeset.times import seconds
from coil.kinds.nodeset.victims import choose
from coil.slurm.wire import SlurmNode

BLIP = 60.0
"""Seconds for which an old worker must have been unhealthy to be replaced beyond `maxUnavailable`."""

_OUT = frozenset({"DOWN", "FAIL", "INVALID_REG", "NOT_RESPONDING"})
"""States of a Slurm node that takes no jobs and is not about to by itself."""

_PERCENT = re.compile(r"[0-9]+%", re.ASCII)


def plan_rollout(snapshot: Snapshot, scaling: Scaling, now: float) -> Mapping[str, Cause]:
    """Uids of old workers to replace now, with the cause.

    Workers that leave because of scaling are not counted: the roll is about those that stay. Nothing is
    given up while no new pod can be built.
    """
    strategy = snapshot.nodeset.spec.update_strategy.type
    if strategy == "OnDelete" or snapshot.fault is not None:
        return {}
    old = [worker for worker in scaling.staying if not is_current(worker, snapshot)]
    if not old:
        return {}
    chosen = [worker for worker in old if _is_broken(worker, now)]
    others = [worker for worker in old if not _is_broken(worker, now)]
    if strategy == "ScheduledUpdate":
        chosen += [worker for worker in others if _in_maintenance(worker, snapshot)]
    else:
        chosen += _within_limit(others, snapshot, scaling, now)
    return {worker.uid: Cause.UPDATE for worker in chosen}


def _within_limit(
    old: Sequence[Worker], snapshot: Snapshot, scaling: Scaling, now: float
) -> Iterator[Worker]:
    """Those that are out of service already use up the limit anyway, so they are the first to go."""
    out = [worker for worker in old if not in_service(worker, snapshot, now)]
    apart = frozenset(worker.uid for worker in out)
    yield from choose(out, disruption_budget(snapshot, scaling, {}, now, apart=apart), Cause.UPDATE)
    serving = [worker for worker in old if worker.uid not in apart]
    budget = disruption_budget(snapshot, scaling, {}, now)
    yield from _steady(budget, choose(serving, budget, Cause.UPDATE), serving)


def _steady(budget: int, chosen: Sequence[Worker], healthy: Sequence[Worker]) -> list[Worker]:
    """Take new ones only as those that were chosen before, and are no more, return to service."""
    kept = [worker for worker in chosen if _is_out_already(worker)]
    uids = {worker.uid for worker in chosen}
    returning = sum(
        own_cause(worker) is Cause.UPDATE and worker.record is not None and worker.record.drain
        for worker in healthy
        if worker.uid not in uids
    )
    new = [worker for worker in chosen if not _is_out_already(worker)]
    return kept + new[: max(budget - len(kept) - returning, 0)]


def _is_out_already(worker: Worker) -> bool:
    """Chosen before, and drained since; a drain that somebody took back is one to be made anew."""
    drained = worker.record is None or worker.record.drain
    return own_cause(worker) is Cause.UPDATE and drained


def disruption_budget(
    snapshot: Snapshot,
    scaling: Scaling,
    condemned: Mapping[str, Cause],
    now: float,
    *,
    apart: Collection[str] = (),
) -> int:
    """How many more workers in service may be taken out of it (invariant I4).

    Empty slots, workers that are out of service, and those condemned already use it up; those of `apart`
    do not.
    """
    staying = scaling.staying
    total = len(staying) + scaling.vacant
    limit = scaled(snapshot.nodeset.spec.update_strategy.rolling_update.max_unavailable, total)
    counted = (worker for worker in staying if worker.uid not in apart)
    out = sum(worker.uid in condemned or not in_service(worker, snapshot, now) for worker in counted)
    return max(limit - scaling.vacant - out, 0)


def in_service(worker: Worker, snapshot: Snapshot, now: float) -> bool:
    """Available as Kubernetes sees it, and, when Slurm has answered, able to take jobs there."""
    available = worker.healthy and worker.available(snapshot.nodeset.spec.min_ready_seconds, now)
    if not available or not isinstance(snapshot.slurm, Known) or snapshot.slurm.node_count == 0:
        return available
    record = worker.record
    return record is not None and (_OUT.isdisjoint(record.state) or _is_held(record))


def _is_held(record: SlurmNode) -> bool:
    """Somebody drained the node: no job misses it more when a good-bye has set it DOWN as well."""
    held = record.drain and not record.ours and not is_of_machine(record)
    return held and record.state & _OUT <= {"DOWN"}


def _is_broken(worker: Worker, now: float) -> bool:
    """Unhealthy for so long that it is no blip, or never well: replacing it takes nothing from anybody."""
    if worker.healthy:
        return False
    ready = worker.pod.status.condition("Ready")
    since = seconds(ready.last_transition_time) if ready is not None else 0.0
    since = max(since, seconds(worker.pod.metadata.creation_timestamp))
    return worker.finished or worker.never_ran or now - since > BLIP


def is_current(worker: Worker, snapshot: Snapshot) -> bool:
    """The pod was made from the current revision."""
    return worker.labels.get(keys.LABEL_REVISION) == snapshot.revision


def hashes(snapshot: Snapshot) -> frozenset[str]:
    """Revisions that the pods were made from."""
    return frozenset(worker.labels.get(keys.LABEL_REVISION, "") for worker in snapshot.workers)


def scaled(limit: int | str, total: int) -> int:
    """Limit maxUnavailable as a number of workers; percentages round up, what cannot be read counts as 1."""
    if isinstance(limit, int):
        return limit
    if _PERCENT.fullmatch(limit):
        return math.ceil(int(limit[:-1]) * total / 100)
    return 1


def _in_maintenance(worker: Worker, snapshot: Snapshot) -> bool:
    record = worker.record
    reservation = names.reservation(snapshot.nodeset.metadata.name)
    return record is not None and "MAINTENANCE" in record.state and record.reservation == reservation
