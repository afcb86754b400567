"""Which NodeSets a change concerns (spec: nodeset 8.1; 30, Q5)."""

from collections.abc import Iterable

from coil.api.meta import GROUP
from coil.kinds.nodeset.memory import Memory
from coil.kinds.nodeset.observe import BY_SLURM_NAME, OF_CLUSTER, ON_NODE, Observer, labelled_nodeset
from coil.kinds.owners import owners
from coil.kube.expectations import Expectations
from coil.kube.queue import Queue
from coil.kube.resource import KubeObject
from coil.kube.store import Change, ChangeKind
from coil.kube.views import ManifestView, NodeView, PodView
from coil.slurm.clusters import Clusters
from coil.slurm.poller import Health
from coil.support.objects import ObjectKey


class Watches:
    """Turns changes into keys in the queue, and tells the memory what the caches show."""

    def __init__(self, observer: Observer, memory: Memory, queue: Queue, propagated: tuple[str, ...]) -> None:
        self._observer = observer
        self._memory = memory
        self._queue = queue
        self._propagated = propagated

    def connect(self, clusters: Clusters) -> None:
        """Listen to all caches and to Slurm."""
        seen = self._observer
        seen.nodesets.on_event(lambda change: self._queue.add(change.key))
        seen.controllers.on_event(lambda change: self._cluster_changed(change.key))
        seen.pods.on_event(self._pod_changed)
        seen.nodes.on_event(self._node_changed)
        seen.claims.on_event(self._claim_changed)
        for store in (seen.services, seen.budgets, seen.config_maps):
            store.on_event(self._child_changed)
        clusters.on_change(self._slurm_changed)
        clusters.on_health(self._slurm_turned)

    def _cluster_changed(self, key: ObjectKey) -> None:
        nodesets = self._observer.nodesets.by_index(OF_CLUSTER, str(key))
        self._queue.add_all(nodeset.metadata.key for nodeset in nodesets)

    def _slurm_turned(self, key: ObjectKey, _health: Health) -> None:
        self._cluster_changed(key)

    def _slurm_changed(self, key: ObjectKey, names: frozenset[str]) -> None:
        pods = self._observer.pods
        found = (pods.by_index(BY_SLURM_NAME, f"{key.namespace}/{name}") for name in names)
        self._queue.add_all({owner for group in found for pod in group for owner in _nodeset_of(pod)})

    def _pod_changed(self, change: Change[PodView]) -> None:
        affected = owners(change, "NodeSet")
        for owner in affected:
            observe_pod(self._memory.expectations, owner, change)
        self._queue.add_all(affected or _orphan_keys(change))

    def _node_changed(self, change: Change[NodeView]) -> None:
        if not node_matters(change, self._propagated):
            return
        pods = self._observer.pods.by_index(ON_NODE, change.latest.metadata.name)
        self._queue.add_all({owner for pod in pods for owner in _nodeset_of(pod)})
        placed = (n for n in self._observer.nodesets.list() if n.daemon or n.spec.pin_to_node)
        self._queue.add_all(nodeset.metadata.key for nodeset in placed)

    def _claim_changed(self, change: Change[ManifestView]) -> None:
        self._queue.add_all(labelled_nodeset(change.latest))

    def _child_changed(self, change: Change[ManifestView]) -> None:
        self._queue.add_all(
            owner for state in (change.old, change.new) if state is not None for owner in _owning(state)
        )


def observe_pod(expectations: Expectations, owner: ObjectKey, change: Change[PodView]) -> None:
    """Lower the expectations that this change fulfils; a pod that begins to end counts as deleted."""
    if change.kind is ChangeKind.DELETED or change.latest.terminating:
        expectations.deletion_observed(owner, change.key)
    elif change.kind is ChangeKind.ADDED:
        expectations.creation_observed(owner)


def node_matters(change: Change[NodeView], propagated: Iterable[str]) -> bool:
    """Whether workers on a Kubernetes node are to be looked at; heartbeats do not matter."""
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    if old.spec != new.spec:
        return True
    if old.metadata.labels != new.metadata.labels or old.metadata.annotations != new.metadata.annotations:
        return True
    return any(_condition(old, kind) != _condition(new, kind) for kind in ("Ready", *propagated))


def _condition(node: NodeView, kind: str) -> tuple[str, str, str]:
    condition = node.status.condition(kind)
    return ("", "", "") if condition is None else (condition.status, condition.reason, condition.message)


def _nodeset_of(pod: PodView) -> Iterable[ObjectKey]:
    return (owner for owner in _owning(pod))


def _owning(child: KubeObject) -> Iterable[ObjectKey]:
    """NodeSets among the owners; the shared objects of a cluster have several and no controller."""
    for owner in child.metadata.owner_references:
        if owner.kind == "NodeSet" and owner.api_version.startswith(f"{GROUP}/"):
            yield ObjectKey(child.metadata.namespace, owner.name)


def _orphan_keys(change: Change[PodView]) -> Iterable[ObjectKey]:
    return labelled_nodeset(change.latest)
