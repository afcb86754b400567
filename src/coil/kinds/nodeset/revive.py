"""Return a worker to service whose Slurm record still has the state of an earlier incarnation.

A stopping worker sets its own node DOWN, one that vanishes goes silent, and Slurm keeps the record. A pod of
the same name then registers under a DOWN node, which `ReturnToService` 0 and 1 leave down. Three proofs that
the state is old:

- the reason is ours, and the present pod did not give it: it is older than the pod's readiness, or the pod
  is as well as ever long after a pod that says good-bye would have ended;
- Slurm took the node down as silent before the present pod was made, and the node answers now;
- the comment names another Kubernetes node than the one the pod runs on now, and the reason is ours or
  one that slurmctld or a prolog gave about that machine (spec: nodeset 24.1; docs/adr/0031).

A state with anybody else's reason stays (invariant I3).
"""

from collections.abc import Mapping

from coil.kinds.nodeset.actions import Resume
from coil.kinds.nodeset.cordon import wanted_cause
from coil.kinds.nodeset.drain import POD_TERMINATING, Cause
from coil.kinds.nodeset.held import is_out, is_users
from coil.kinds.nodeset.identity import decode_comment
from coil.kinds.nodeset.ownership import is_of_machine, is_own, is_silent
from coil.kinds.nodeset.snapshot import Known, Slurm, Snapshot, Worker
from coil.kinds.nodeset.times import seconds
from coil.slurm.wire import SlurmNode

GOOD_BYE = 120.0
"""Seconds after its good-bye at which a pod is known to end, or has ended. Clocks may differ by less."""

_REFUSED = frozenset({"INVALID_REG", "REBOOT_ISSUED", "REBOOT_REQUESTED", "POWERING_DOWN"})
"""In these states slurmctld refuses the change, or something else is going on (spec: nodeset 7.3)."""


def plan_revivals(snapshot: Snapshot, condemned: Mapping[str, Cause]) -> list[Resume]:
    """Nodes to reset in one call; a worker that is to be drained stays down."""
    names = [
        worker.slurm_name
        for worker in snapshot.workers
        if worker.record is not None
        and is_out(worker.record)
        and worker.slurm_name not in snapshot.held.drains
        and worker.host is not None
        and worker.speaks_for_record
        and wanted_cause(worker, condemned) is None
        and not is_users(worker)
        and is_stale(worker, worker.record, snapshot.slurm)
    ]
    why = "the state is that of an earlier incarnation of the worker"
    return [Resume(nodes=tuple(names), why=why)] if names else []


def is_stale(worker: Worker, record: SlurmNode, slurm: Slurm) -> bool:
    """The record is out of service for a cause that is over."""
    if record.busy or not _REFUSED.isdisjoint(record.state):
        return False
    if _moved(worker, record):
        known = is_own(record) or is_of_machine(record)
        return known and is_out(record)
    return "DOWN" in record.state and _left_by_predecessor(worker, record, slurm)


def _moved(worker: Worker, record: SlurmNode) -> bool:
    info = decode_comment(record.comment)
    return info is not None and info.node not in ("", worker.pod.spec.node_name)


def _left_by_predecessor(worker: Worker, record: SlurmNode, slurm: Slurm) -> bool:
    if "NOT_RESPONDING" in record.state:
        return False
    if is_silent(record):
        silent = record.reason_changed_at
        return silent.set and silent.number < seconds(worker.pod.metadata.creation_timestamp)
    if not is_own(record):
        return False
    return record.reason != POD_TERMINATING or _by_another_pod(worker, record, slurm)


def _by_another_pod(worker: Worker, record: SlurmNode, slurm: Slurm) -> bool:
    said = record.reason_changed_at
    if not said.set or not isinstance(slurm, Known):
        return False
    return said.number < worker.ready_since or said.number + GOOD_BYE < slurm.observed_at
