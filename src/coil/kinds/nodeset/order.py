"""Which worker goes first when some must go (spec: nodeset 17)."""

import math
import re
from collections.abc import Iterable

from coil.api import keys
from coil.kinds.nodeset.snapshot import Worker
from coil.kinds.nodeset.times import NEVER, seconds

_PHASE_WEIGHT = {"Unknown": 1, "Running": 2}
_COST = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_INT32 = 2**31
_TRUE = frozenset({"1", "t", "T", "true", "True", "TRUE"})


def ordered(workers: Iterable[Worker]) -> list[Worker]:
    """The workers, first victim first. Equal ones go by name, so that every pass gives one order."""
    return sorted(workers, key=_rank)


def deletion_cost(worker: Worker) -> int:
    """Cost that a user put on the pod; what is no plain int32 counts as 0."""
    text = worker.annotations.get(keys.ANNOTATION_POD_DELETION_COST, "")
    if not _COST.fullmatch(text):
        return 0
    cost = int(text)
    return cost if -_INT32 <= cost < _INT32 else 0


def _rank(worker: Worker) -> tuple[object, ...]:
    pod, annotations = worker.pod, worker.annotations
    return (
        bool(pod.spec.node_name),
        _PHASE_WEIGHT.get(pod.status.phase, 0),
        pod.ready,
        deletion_cost(worker),
        seconds(annotations.get(keys.ANNOTATION_POD_DEADLINE)),
        annotations.get(keys.ANNOTATION_POD_CORDON) not in _TRUE,
        -worker.ordinal,
        _newest_first(worker.ready_since) if pod.ready else 0,
        _newest_first(seconds(pod.metadata.creation_timestamp)),
        pod.metadata.name,
    )


def _newest_first(moment: float) -> float:
    """Later times first; the zero time counts as later than any."""
    return -math.inf if moment == NEVER else -moment
