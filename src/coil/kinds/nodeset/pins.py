"""Bring workers back to the Kubernetes nodes they ran on (spec: nodeset 14.3)."""

from coil.kinds.nodeset.eligibility import judge
from coil.kinds.nodeset.snapshot import Snapshot


def pin_of(snapshot: Snapshot, ordinal: int) -> str:
    """The node to pin a new pod to; empty where it may run anywhere."""
    if not _pins(snapshot):
        return ""
    node = snapshot.nodeset.status.ordinal_to_node.get(str(ordinal), "")
    return node if _takes_workers(snapshot, node) else ""


def pins(snapshot: Snapshot) -> dict[str, str]:
    """The node of each ordinal: where its pod runs, or ran last, as long as a worker should run there."""
    if not _pins(snapshot):
        return {}
    found = dict(snapshot.nodeset.status.ordinal_to_node)
    for worker in snapshot.workers:
        if worker.pod.status.phase == "Running" and worker.pod.spec.node_name and worker.ordinal >= 0:
            found[str(worker.ordinal)] = worker.pod.spec.node_name
    if snapshot.placement is None:
        return found
    return {ordinal: node for ordinal, node in sorted(found.items()) if _takes_workers(snapshot, node)}


def _pins(snapshot: Snapshot) -> bool:
    return snapshot.nodeset.spec.pin_to_node and not snapshot.nodeset.daemon


def _takes_workers(snapshot: Snapshot, name: str) -> bool:
    node = next((node for node in snapshot.nodes if node.metadata.name == name), None)
    where = snapshot.placement
    return node is not None and where is not None and judge(where, node).run
