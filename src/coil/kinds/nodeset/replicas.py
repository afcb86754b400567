"""Scaling mode StatefulSet: a number of workers with ordinals (spec: nodeset 14)."""

from collections.abc import Iterable, Iterator
from itertools import count, islice

from coil.api import names
from coil.kinds.nodeset.actions import CreatePod
from coil.kinds.nodeset.drain import Cause
from coil.kinds.nodeset.pins import pin_of
from coil.kinds.nodeset.scaling import BURST, Scaling, condemn_foreign, split_by_mode, stay
from coil.kinds.nodeset.snapshot import Snapshot, Worker
from coil.kinds.nodeset.victims import choose


def plan_replicas(snapshot: Snapshot) -> Scaling:
    """Compare the workers with the wanted number. Those that end or have ended count as chosen."""
    mine, foreign = split_by_mode(snapshot)
    replicas = max(snapshot.nodeset.spec.replicas, 0)
    missing = max(replicas - len(mine), 0)
    going = sum(worker.terminating or worker.finished for worker in mine)
    candidates = [worker for worker in mine if not (worker.terminating or worker.finished)]
    victims = choose(candidates, len(mine) - replicas - going, Cause.SCALE_IN)
    condemned = {worker.uid: Cause.SCALE_IN for worker in victims}
    condemned |= condemn_foreign(foreign, missing=missing)
    return Scaling(
        desired=replicas,
        mine=mine,
        create=tuple(_creations(snapshot, missing)),
        missing=missing,
        condemned=condemned,
        vacant=max(replicas - len(stay(mine, condemned)), 0),
    )


def _creations(snapshot: Snapshot, missing: int) -> Iterator[CreatePod]:
    """The lowest ordinals that no pod holds; a terminating pod holds its own."""
    nodeset = snapshot.nodeset
    why = f"{missing} of {nodeset.spec.replicas} replicas are missing"
    for ordinal in islice(_free_ordinals(snapshot.workers), min(missing, BURST)):
        name = names.worker_pod(nodeset.metadata.name, ordinal, nodeset.spec.ordinal_padding)
        cordoned = name in snapshot.held.cordons
        yield CreatePod(
            name=name, ordinal=ordinal, node=pin_of(snapshot, ordinal), cordoned=cordoned, why=why
        )


def _free_ordinals(workers: Iterable[Worker]) -> Iterator[int]:
    used = {worker.ordinal for worker in workers}
    return (ordinal for ordinal in count() if ordinal not in used)
