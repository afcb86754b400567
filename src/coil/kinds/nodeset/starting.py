"""When a start of many workers is over, so that what is written about each of them is written in one go.

While workers start, every write about one of them takes its time from the API server, the scheduler and the
kubelets that bring up the others.
"""

from collections.abc import Collection

from coil.kinds.nodeset.snapshot import Snapshot, Worker
from coil.kinds.nodeset.times import seconds

FEW = 16
"""Up to so many are written about at once; more wait until no worker turns ready any more."""
CALM = 5.0
"""Seconds without a worker that turned ready, after which many are written about."""
PATIENCE = 60.0
"""Seconds after which the first of many is written about, however many workers still turn ready; as many
more for each further thousand of workers."""


def due_in(snapshot: Snapshot, lacking: Collection[str], now: float) -> float:
    """Seconds until the workers with these uids are written about; 0 or less: now."""
    if len(lacking) <= FEW:
        return 0
    patience = PATIENCE * max(len(snapshot.workers) / 1_000, 1)
    starting = (worker for worker in snapshot.workers if not worker.terminating and not worker.finished)
    calm = max(_started_by(worker) for worker in starting)
    first = min(_began(worker) for worker in snapshot.workers if worker.uid in lacking)
    return min(calm, first + patience) - now


def _began(worker: Worker) -> float:
    return worker.ready_since if worker.healthy else seconds(worker.pod.metadata.creation_timestamp)


def _started_by(worker: Worker) -> float:
    """When it is taken to have started: some time after it turned ready, or much later if it does not."""
    return _began(worker) + (CALM if worker.healthy else PATIENCE)
