"""Which workers of an old revision may be given up now (spec: nodeset 23, invariant I4)."""

import math
import re
from collections.abc import Mapping, Sequence

from coil.api import keys, names
from coil.kinds.nodeset.drain import Cause, own_cause
from coil.kinds.nodeset.scaling import Scaling
from coil.kinds.nodeset.snapshot import Snapshot, Worker
from coil.kinds.nodeset.victims import choose

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
    chosen = [worker for worker in old if not worker.healthy]
    healthy = [worker for worker in old if worker.healthy]
    if strategy == "ScheduledUpdate":
        chosen += [worker for worker in healthy if _in_maintenance(worker, snapshot)]
    else:
        budget = disruption_budget(snapshot, scaling, {}, now)
        chosen += _within(budget, choose(healthy, budget, Cause.UPDATE), healthy)
    return {worker.uid: Cause.UPDATE for worker in chosen}


def _within(budget: int, chosen: Sequence[Worker], healthy: Sequence[Worker]) -> list[Worker]:
    """Take new ones only as those that were chosen before, and are no more, return to service."""
    kept = [worker for worker in chosen if own_cause(worker) is Cause.UPDATE]
    uids = {worker.uid for worker in chosen}
    returning = sum(
        own_cause(worker) is Cause.UPDATE and worker.record is not None and worker.record.drain
        for worker in healthy
        if worker.uid not in uids
    )
    new = [worker for worker in chosen if own_cause(worker) is not Cause.UPDATE]
    return kept + new[: max(budget - len(kept) - returning, 0)]


def disruption_budget(
    snapshot: Snapshot, scaling: Scaling, condemned: Mapping[str, Cause], now: float
) -> int:
    """How many more workers in service may be taken out of it (invariant I4).

    Empty slots, workers that are not available or not healthy, and those condemned already use it up.
    """
    staying = scaling.staying
    total = len(staying) + scaling.vacant
    limit = scaled(snapshot.nodeset.spec.update_strategy.rolling_update.max_unavailable, total)
    delay = snapshot.nodeset.spec.min_ready_seconds
    out = sum(
        worker.uid in condemned or not (worker.healthy and worker.available(delay, now)) for worker in staying
    )
    return max(limit - scaling.vacant - out, 0)


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
