"""The wanted change of the number of workers; computed by `replicas` or `daemons`."""

from collections.abc import Iterable, Mapping

import msgspec

from coil.api import keys
from coil.kinds.nodeset.actions import CreatePod
from coil.kinds.nodeset.drain import Cause, own_cause
from coil.kinds.nodeset.snapshot import Snapshot, Worker

BURST = 500
"""Most pods that one pass creates, and most that it deletes."""


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """What is missing, and what is too much."""

    desired: int
    mine: tuple[Worker, ...]
    """Workers of the current scaling mode."""
    create: tuple[CreatePod, ...] = ()
    missing: int = 0
    """Pods to create, in this pass and later ones."""
    condemned: Mapping[str, Cause] = {}
    """Uids of pods that have to go, with the cause."""
    vacant: int = 0
    """Places of workers without a pod that is there and stays."""
    refusals: tuple[str, ...] = ()
    """Why some Kubernetes nodes get no worker although they should."""

    @property
    def goes_on(self) -> bool:
        """More pods are missing than one pass makes."""
        return len(self.create) == BURST < self.missing

    @property
    def staying(self) -> list[Worker]:
        """Workers that do not leave because of scaling."""
        return stay(self.mine, self.condemned)


def stay(workers: Iterable[Worker], condemned: Mapping[str, Cause]) -> list[Worker]:
    """Workers that are neither ending nor condemned."""
    return [worker for worker in workers if worker.uid not in condemned and not worker.terminating]


def split_by_mode(snapshot: Snapshot) -> tuple[tuple[Worker, ...], tuple[Worker, ...]]:
    """Workers made for the current scaling mode, and the others."""
    mode = snapshot.nodeset.spec.scaling_mode
    mine = tuple(w for w in snapshot.workers if w.labels.get(keys.LABEL_SCALING_MODE) == mode)
    foreign = tuple(w for w in snapshot.workers if w.labels.get(keys.LABEL_SCALING_MODE) != mode)
    return mine, foreign


def condemn_foreign(foreign: Iterable[Worker], *, missing: int) -> dict[str, Cause]:
    """Workers of the other mode leave once the new mode has its pods; who was told to leave does."""
    return {
        worker.uid: Cause.SCALING_MODE
        for worker in foreign
        if not missing or own_cause(worker) is Cause.SCALING_MODE
    }
