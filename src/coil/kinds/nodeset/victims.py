"""Choose workers to give up, and stay with the choice (spec: nodeset 17 and 30, Q12 and Q23)."""

from collections.abc import Iterable, Sequence

from coil.kinds.nodeset.drain import Cause, own_cause
from coil.kinds.nodeset.order import ordered
from coil.kinds.nodeset.removal import is_idle
from coil.kinds.nodeset.snapshot import Worker

BETWEEN_JOBS = 10.0
"""Seconds for which a worker must have been idle to take the place of a busy victim. Where jobs wait, the
next one starts within a second or two: the victim would be back in service, with a new job, for nothing."""


def choose(candidates: Iterable[Worker], count: int, cause: Cause) -> list[Worker]:
    """`count` of the candidates, those chosen in earlier passes first.

    An earlier choice is given up only for a worker that stays idle and would go first anyway: a drained
    worker that still runs a job then returns to service.
    """
    if count <= 0:
        return []
    order = ordered(candidates)
    earlier = [worker for worker in order if own_cause(worker) is cause]
    kept = sorted(earlier, key=lambda worker: not is_idle(worker))[:count]
    kept_uids = {worker.uid for worker in kept}
    others = [worker for worker in order if worker.uid not in kept_uids]
    fill = others[: count - len(kept)]
    return _swap_busy(kept, others[len(fill) :], order) + fill


def _swap_busy(kept: Sequence[Worker], others: Sequence[Worker], order: Sequence[Worker]) -> list[Worker]:
    """Replace kept workers that are busy, last ones first, by idle ones that precede them."""
    position = {worker.uid: index for index, worker in enumerate(order)}
    victims = list(kept)
    idle = [w for w in others if is_idle(w) and (w.free or w.idle_for >= BETWEEN_JOBS)]
    busy = [index for index, worker in enumerate(victims) if not is_idle(worker)]
    busy.sort(key=lambda index: -position[victims[index].uid])
    for index, replacement in zip(busy, idle, strict=False):
        if position[replacement.uid] < position[victims[index].uid]:
            victims[index] = replacement
    return victims
