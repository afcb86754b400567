"""Look after the reservation of a ScheduledUpdate: ask, decide, write (spec: nodeset 22)."""

import msgspec

from coil.api import keys, names
from coil.api.nodeset import NodeSet
from coil.kinds.nodeset.memory import Memory
from coil.kinds.nodeset.reservation import Maintenance, concerns, plan_maintenance
from coil.kinds.nodeset.snapshot import Snapshot
from coil.kinds.resources import NODESETS
from coil.kinds.status import Problem
from coil.kube.client import Client
from coil.kube.errors import ApiError, Conflict, NotFound
from coil.slurm.clusters import Cluster
from coil.slurm.errors import SlurmError
from coil.slurm.wire import Reservation

STEP = "SlurmReservation"


class Upkeep(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    known: bool = False
    """Slurm has said whether there is a reservation."""
    held: Reservation | None = None
    changed: bool = False
    """Something was written; look again soon."""
    problems: tuple[Problem, ...] = ()


async def look_after(
    snapshot: Snapshot, cluster: Cluster | None, client: Client, memory: Memory, now: float
) -> Upkeep:
    """One pass. A failure concerns the reservation only; nothing is done on half an answer."""
    nodeset = snapshot.nodeset
    if not concerns(nodeset) or cluster is None or not snapshot.whole:
        return Upkeep()
    try:
        held = await find(nodeset, cluster)
        nodes = [worker.slurm_name for worker in snapshot.workers if worker.record is not None]
        plan = plan_maintenance(nodeset, nodes, held, now)
        if memory.is_reserved(nodeset.metadata.key, plan.put, held):
            plan = msgspec.structs.replace(plan, put=None)
        await _write(nodeset, plan, cluster, client)
        if plan.put is not None:
            memory.reserved(nodeset.metadata.key, plan.put, held)
    except (SlurmError, ApiError) as error:
        return Upkeep(problems=(Problem(STEP, type(error).__name__, str(error), retry=True),))
    except ValueError as error:
        return Upkeep(problems=(Problem(STEP, "Invalid", f"spec.updateStrategy.scheduledUpdate: {error}"),))
    return Upkeep(known=True, held=held, changed=plan != Maintenance())


async def find(nodeset: NodeSet, cluster: Cluster) -> Reservation | None:
    """The NodeSet's reservation in Slurm; SlurmError when Slurm does not say."""
    name = names.reservation(nodeset.metadata.name)
    return next((found for found in await cluster.client.reservations() if found.name == name), None)


async def _write(nodeset: NodeSet, plan: Maintenance, cluster: Cluster, client: Client) -> None:
    if plan.put is not None:
        await cluster.client.put_reservation(plan.put)
    if plan.remove:
        await cluster.client.delete_reservation(plan.remove)
    if plan.finalizer is not None:
        await set_finalizer(nodeset, client, wanted=plan.finalizer)


async def set_finalizer(nodeset: NodeSet, client: Client, *, wanted: bool) -> None:
    """Add or remove the mark that a reservation may exist, unless the NodeSet changed meanwhile."""
    meta = nodeset.metadata
    others = [finalizer for finalizer in meta.finalizers if finalizer != keys.FINALIZER_RESERVATION]
    finalizers = [*others, keys.FINALIZER_RESERVATION] if wanted else others
    body = {"metadata": {"finalizers": finalizers}}
    try:
        await client.patch(NODESETS, meta.name, body, meta.namespace, resource_version=meta.resource_version)
    except (NotFound, Conflict):
        return


async def finalize(nodeset: NodeSet, client: Client, cluster: Cluster | None) -> None:
    """Let a NodeSet go: its reservation first, then the mark (spec: nodeset 22.5).

    Raises:
        SlurmError: Slurm could not be asked; the NodeSet stays until it can.
        ApiError: the finalizer could not be removed.
    """
    if keys.FINALIZER_RESERVATION not in nodeset.metadata.finalizers:
        return
    if cluster is not None and (held := await find(nodeset, cluster)) is not None:
        await cluster.client.delete_reservation(held.name)
    await set_finalizer(nodeset, client, wanted=False)
