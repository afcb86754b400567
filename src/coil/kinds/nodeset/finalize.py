"""Let a NodeSet go: its Slurm reservation first, then the finalizer (spec: nodeset 22.5)."""

from coil.api import keys, names
from coil.api.nodeset import NodeSet
from coil.kinds.resources import NODESETS
from coil.kube.client import Client
from coil.kube.errors import Conflict, NotFound
from coil.slurm.clusters import Cluster


async def finalize(nodeset: NodeSet, client: Client, cluster: Cluster | None) -> None:
    """Remove the reservation that may exist, and the mark that said so; asks Slurm only when marked.

    Raises:
        SlurmError: Slurm could not be asked; the NodeSet stays until it can.
        ApiError: the finalizer could not be removed.
    """
    meta = nodeset.metadata
    if keys.FINALIZER_RESERVATION not in meta.finalizers:
        return
    if cluster is not None:
        reservation = names.reservation(meta.name)
        if any(found.name == reservation for found in await cluster.client.reservations()):
            await cluster.client.delete_reservation(reservation)
    kept = [finalizer for finalizer in meta.finalizers if finalizer != keys.FINALIZER_RESERVATION]
    body = {"metadata": {"finalizers": kept}}
    try:
        await client.patch(NODESETS, meta.name, body, meta.namespace, resource_version=meta.resource_version)
    except (NotFound, Conflict):
        return
