"""May this pod be deleted now? The only place that says yes (invariants I1 and I2).

Each yes rests on positive knowledge:

| the pod | who said so | the deletion is bound to |
|---|---|---|
| has finished | kubelet | uid and resourceVersion |
| never ran slurmd | scheduler, or kubelet on a node that is alive | uid and resourceVersion |
| is drained and runs no job | Slurm, asked in this pass | uid |
| is not registered although it had time to | Slurm, whose whole list was read in this pass | both |
"""

import msgspec

from coil.kinds.nodeset.snapshot import Known, Registration, Slurm, Worker
from coil.kinds.nodeset.times import seconds

REGISTRATION_GRACE = 60.0
"""Seconds that slurmd may take to register after its pod was made or turned ready. It takes some 3."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a pod may go, and why or why not."""

    allowed: bool
    why: str
    exact: bool = False
    """Only as long as the pod's resourceVersion is the one that was looked at."""
    needs_fresh: bool = False
    """Only when Slurm was asked in this pass."""
    retry_after: float | None = None
    """Seconds after which the answer changes even if nothing else does."""


def may_delete(worker: Worker, slurm: Slurm) -> Verdict:
    """Judge one pod that somebody wants to be rid of."""
    if worker.finished:
        return Verdict(allowed=True, why=f"pod has ended ({worker.pod.status.phase})", exact=True)
    if worker.never_ran and _host_speaks(worker):
        return Verdict(allowed=True, why="slurmd never ran in this pod", exact=True)
    if not isinstance(slurm, Known) or worker.registration is Registration.UNKNOWN:
        return Verdict(allowed=False, why="Slurm has not said what runs there")
    if worker.free:
        return Verdict(allowed=True, why="Slurm node is drained", needs_fresh=True)
    if worker.registration is Registration.ABSENT:
        return _absent(worker, slurm)
    return Verdict(allowed=False, why=_held_by(worker))


def is_idle(worker: Worker) -> bool:
    """Nothing runs there, as far as is positively known."""
    if worker.finished or (worker.never_ran and _host_speaks(worker)):
        return True
    if worker.registration is Registration.UNKNOWN or worker.jobs:
        return False
    return worker.record is None or not worker.record.busy


def _held_by(worker: Worker) -> str:
    if worker.jobs:
        return f"Slurm node runs job {worker.jobs[0].job_id}"
    return "Slurm node is not drained yet"


def _absent(worker: Worker, slurm: Known) -> Verdict:
    if worker.jobs:
        return Verdict(allowed=False, why=f"job {worker.jobs[0].job_id} names an unregistered node")
    if slurm.node_count == 0:
        return Verdict(allowed=False, why="Slurm lists no node at all")
    since = max(seconds(worker.pod.metadata.creation_timestamp), worker.ready_since)
    left = since + REGISTRATION_GRACE - slurm.observed_at
    if left > 0:
        return Verdict(allowed=False, why="slurmd may still register", retry_after=left)
    return Verdict(allowed=True, why="not registered in Slurm", exact=True, needs_fresh=True)


def _host_speaks(worker: Worker) -> bool:
    """The kubelet's word is current: its node is ready. An unscheduled pod has no kubelet."""
    if not worker.pod.spec.node_name:
        return True
    ready = worker.host and worker.host.status.condition("Ready")
    return bool(ready and ready.status == "True")
