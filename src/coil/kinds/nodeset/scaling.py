"""How many workers there should be, and which are too many (spec: nodeset 14)."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count, islice

import msgspec

from coil.api import keys, names
from coil.api.nodeset import NodeSet
from coil.kinds.nodeset.actions import CreatePod
from coil.kinds.nodeset.drain import Cause, own_cause
from coil.kinds.nodeset.snapshot import Snapshot, Worker
from coil.kinds.nodeset.victims import choose

BURST = 250
"""Most pods that one pass creates, and most that it deletes."""


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """The wanted change of the number of workers."""

    desired: int
    mine: tuple[Worker, ...]
    """Workers of the current scaling mode."""
    create: tuple[CreatePod, ...] = ()
    missing: int = 0
    condemned: Mapping[str, Cause] = {}
    """Uids of pods that have to go, with the cause."""


def plan_scaling(snapshot: Snapshot) -> Scaling:
    """Compare the workers with the wanted number, in scaling mode StatefulSet."""
    nodeset = snapshot.nodeset
    mine, foreign = split_by_mode(snapshot)
    replicas = max(nodeset.spec.replicas, 0)
    surplus = len(mine) - replicas
    if surplus < 0:
        create = _creations(nodeset, snapshot.workers, -surplus)
        condemned = {w.uid: Cause.SCALING_MODE for w in foreign if own_cause(w) is Cause.SCALING_MODE}
        return Scaling(desired=replicas, mine=mine, create=create, missing=-surplus, condemned=condemned)
    going = sum(worker.terminating or worker.finished for worker in mine)
    staying = [worker for worker in mine if not (worker.terminating or worker.finished)]
    victims = choose(staying, surplus - going, Cause.SCALE_IN)
    condemned = {worker.uid: Cause.SCALE_IN for worker in victims}
    condemned |= {worker.uid: Cause.SCALING_MODE for worker in foreign}
    return Scaling(desired=replicas, mine=mine, condemned=condemned)


def split_by_mode(snapshot: Snapshot) -> tuple[tuple[Worker, ...], tuple[Worker, ...]]:
    """Workers made for the current scaling mode, and the others."""
    mode = snapshot.nodeset.spec.scaling_mode
    mine = tuple(w for w in snapshot.workers if w.labels.get(keys.LABEL_SCALING_MODE) == mode)
    foreign = tuple(w for w in snapshot.workers if w.labels.get(keys.LABEL_SCALING_MODE) != mode)
    return mine, foreign


def _creations(nodeset: NodeSet, workers: Iterable[Worker], missing: int) -> tuple[CreatePod, ...]:
    """The lowest ordinals that no pod holds; a terminating pod holds its own."""
    free = islice(_free_ordinals(workers), min(missing, BURST))
    digits = nodeset.spec.ordinal_padding
    why = f"{missing} of {nodeset.spec.replicas} replicas are missing"
    return tuple(
        CreatePod(name=names.worker_pod(nodeset.metadata.name, ordinal, digits), ordinal=ordinal, why=why)
        for ordinal in free
    )


def _free_ordinals(workers: Iterable[Worker]) -> Iterator[int]:
    used = {worker.ordinal for worker in workers}
    return (ordinal for ordinal in count() if ordinal not in used)
