"""Which Slurm records of workers that are gone for good may go (spec: nodeset 18; both scaling modes).

Only with `pruneSlurmNodeRecords: NodeNotFound`. A record goes when Slurm has given it up (DOWN and not
responding) for a reason of Slurm's or ours and without a reservation, its comment names this very NodeSet,
its pod is gone, and nothing will bring it back: in StatefulSet mode the ordinal is no longer wanted, in
DaemonSet mode no node asks for that host name.
"""

from collections.abc import Iterable, Iterator

from coil.api import names
from coil.build.nodeset import daemon_hostname
from coil.kinds.nodeset.actions import Prune
from coil.kinds.nodeset.identity import PodInfo, decode_comment
from coil.kinds.nodeset.ownership import is_of_machine, is_own
from coil.kinds.nodeset.snapshot import Snapshot
from coil.slurm.wire import SlurmNode


def plan_pruning(snapshot: Snapshot) -> list[Prune]:
    """Records to remove; none while Slurm's answer may not be whole."""
    if snapshot.nodeset.spec.prune_slurm_node_records != "NodeNotFound" or not snapshot.whole:
        return []
    found = tuple(sorted(_gone_for_good(snapshot)))
    return [Prune(nodes=found)] if found else []


def ghosts(records: Iterable[SlurmNode]) -> tuple[SlurmNode, ...]:
    """Records that Slurm has given up and in which nobody has written anything that is to be kept."""
    return tuple(
        record
        for record in records
        if {"DOWN", "NOT_RESPONDING"} <= record.state and not record.busy and _nobody_cares(record)
    )


def _nobody_cares(record: SlurmNode) -> bool:
    """No person drained or reserved the node; a record made anew would have forgotten it."""
    machine = not record.reason or is_own(record) or is_of_machine(record)
    return machine and not record.reservation


def _gone_for_good(snapshot: Snapshot) -> Iterator[str]:
    pods = {worker.name for worker in snapshot.workers}
    served = {worker.slurm_name for worker in snapshot.workers}
    for record in snapshot.ghosts:
        info = decode_comment(record.comment)
        if info is None or not _is_ours(snapshot, info) or record.name in served or info.pod_name in pods:
            continue
        if not _comes_back(snapshot, record.name, info):
            yield record.name


def _is_ours(snapshot: Snapshot, info: PodInfo) -> bool:
    meta = snapshot.nodeset.metadata
    ours = (meta.namespace, meta.name, meta.uid)
    return (
        bool(info.pod_name and info.node) and (info.namespace, info.node_set_name, info.node_set_uid) == ours
    )


def _comes_back(snapshot: Snapshot, name: str, info: PodInfo) -> bool:
    if not snapshot.nodeset.daemon:
        ordinal = names.split_ordinal(info.pod_name)[1]
        return ordinal < snapshot.nodeset.spec.replicas
    hostnames = (daemon_hostname(n.metadata.name, n.metadata.annotations) for n in snapshot.nodes)
    return name in set(hostnames)
