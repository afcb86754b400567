"""May this pod be deleted now? The only place that says yes (invariants I1 and I2).

Each yes rests on positive knowledge:

| the pod | who said so | the deletion is bound to |
|---|---|---|
| has finished | kubelet | uid and resourceVersion |
| never ran slurmd | scheduler, or kubelet on a node that is alive | uid and resourceVersion |
| is drained and runs no job | Slurm, asked in this pass | both |
| is not registered for a minute, under any name | Slurm, whose whole list was read in this pass | both |
"""

import msgspec

from coil.kinds.nodeset.snapshot import Known, Registration, Snapshot, Worker
from coil.kinds.nodeset.times import seconds

REGISTRATION_GRACE = 60.0
"""Seconds that slurmd may take to register after its pod was made or turned ready (it takes some 3), and for
which Slurm must have listed others but not this node."""

MASS_GRACE = 600.0
"""The same while half of the ready workers of the NodeSet are missing: a slurmctld that lost its state looks
so, and somebody may give the state back. Not for ever: a template whose workers cannot register must
be replaceable."""


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


def may_delete(worker: Worker, snapshot: Snapshot) -> Verdict:
    """Judge one pod that somebody wants to be rid of."""
    slurm = snapshot.slurm
    if worker.finished:
        return Verdict(allowed=True, why=f"pod has ended ({worker.pod.status.phase})", exact=True)
    if _never_ran(worker):
        return Verdict(allowed=True, why="slurmd never ran in this pod", exact=True)
    if not isinstance(slurm, Known) or worker.registration is Registration.UNKNOWN:
        return Verdict(allowed=False, why="Slurm has not said what runs there")
    if worker.free:
        return Verdict(allowed=True, why="Slurm node is drained", exact=True, needs_fresh=True)
    if worker.registration is Registration.ABSENT:
        return _absent(worker, slurm, MASS_GRACE if snapshot.mostly_absent else REGISTRATION_GRACE)
    return Verdict(allowed=False, why=_held_by(worker))


def is_idle(worker: Worker) -> bool:
    """Nothing runs there, as far as is positively known."""
    if worker.finished or _never_ran(worker):
        return True
    if worker.registration is Registration.UNKNOWN or worker.jobs:
        return False
    return not worker.registered_as and (worker.record is None or not worker.record.busy)


def _held_by(worker: Worker) -> str:
    if worker.jobs:
        return f"Slurm node runs job {worker.jobs[0].job_id}"
    return "Slurm node is not drained yet"


def _absent(worker: Worker, slurm: Known, grace: float) -> Verdict:
    if worker.registered_as:
        return Verdict(allowed=False, why=f"may be registered as {worker.registered_as}")
    if slurm.doubt:
        return Verdict(allowed=False, why=f"Slurm's answer is not whole: {slurm.doubt}")
    if worker.jobs:
        return Verdict(allowed=False, why=f"job {worker.jobs[0].job_id} names an unregistered node")
    if slurm.node_count == 0:
        return Verdict(allowed=False, why="Slurm lists no node at all")
    since = max(seconds(worker.pod.metadata.creation_timestamp), worker.ready_since)
    left = max(since + REGISTRATION_GRACE - slurm.observed_at, grace - worker.absent_for)
    if left > 0:
        return Verdict(allowed=False, why="slurmd may still register", retry_after=left)
    return Verdict(allowed=True, why="not registered in Slurm", exact=True, needs_fresh=True)


def _never_ran(worker: Worker) -> bool:
    """No slurmd ran here; of a scheduled pod a live kubelet must say so, and Slurm must not say otherwise.

    The kubelet tells of a started container up to a second late; slurmd may have registered by then.
    """
    if not worker.never_ran or not worker.pod.spec.node_name:
        return worker.never_ran
    record, host = worker.record, worker.host
    if worker.jobs or (record is not None and not worker.free and "DOWN" not in record.state):
        return False
    ready = host and host.status.condition("Ready")
    return bool(ready and ready.status == "True")
