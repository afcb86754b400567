"""Which Controllers a change concerns (spec: control-plane 11.1).

Beyond the reference: pods of slurmctld, so that a new one gets its label within milliseconds; ConfigMaps
referred to, so that a missing one is noticed when it comes; claims that backups share.
"""

from collections.abc import Iterable
from typing import Any

from coil.api.controller import Controller
from coil.api.nodeset import NodeSet
from coil.build import controller as build
from coil.kinds.controller.observe import Observer, controller_of, rehearsed_for
from coil.kinds.owners import owners
from coil.kinds.secrets import data_changed
from coil.kube.queue import Queue
from coil.kube.store import Change
from coil.slurm.clusters import Clusters
from coil.support.objects import ObjectKey

USES = "controller/uses"
"""Index of Controllers by what they refer to: `<kind>/<namespace>/<name>`."""


def uses(controller: Controller) -> Iterable[str]:
    """Everything in its namespace that a Controller refers to."""
    spec, namespace = controller.spec, controller.metadata.namespace
    for ref in (spec.slurm_key_ref, controller.jwt_ref):
        if ref is not None:
            yield f"Secret/{namespace}/{ref.name}"
    for config_map in (*build.references(controller), *filter(None, [spec.jwks_key_ref])):
        yield f"ConfigMap/{namespace}/{config_map.name}"
    if spec.accounting_ref is not None:
        yield f"Accounting/{namespace}/{spec.accounting_ref.name}"
    if spec.persistence is not None and spec.persistence.existing_claim:
        yield f"PersistentVolumeClaim/{namespace}/{spec.persistence.existing_claim}"


def watch(observer: Observer, clusters: Clusters, queue: Queue) -> None:
    """Add the keys of the Controllers that a change concerns to the queue."""
    controllers = observer.controllers
    controllers.add_index(USES, uses)

    def users(kind: str, change: Change[Any]) -> None:
        for controller in controllers.by_index(USES, f"{kind}/{change.key}"):
            queue.add(controller.metadata.key)

    controllers.on_event(lambda change: queue.add(change.key))
    for children in (observer.services, observer.config_maps, observer.stateful_sets):
        children.on_event(lambda change: queue.add_all(owners(change, "Controller")))
    observer.secrets.on_event(lambda change: users("Secret", change) if data_changed(change) else None)
    observer.config_maps.on_event(lambda change: users("ConfigMap", change))
    observer.accountings.on_event(lambda change: users("Accounting", change))
    observer.claims.on_event(lambda change: users("PersistentVolumeClaim", change))
    observer.nodesets.on_event(lambda change: queue.add_all(members(change)))
    clusters.on_health(lambda key, _health: queue.add(key))
    clusters.on_key(queue.add)
    observer.pods.on_event(lambda change: queue.add_all(controller_of(change.latest)))
    observer.pods.on_event(lambda change: queue.add_all(rehearsed_for(change.latest)))


def members(change: Change[NodeSet]) -> set[ObjectKey]:
    """The Controllers whose slurm.conf a NodeSet's change may alter; its status does not."""
    old, new = change.old, change.new
    if old is not None and new is not None and old.metadata.generation == new.metadata.generation:
        return set()
    return {nodeset.controller_key for nodeset in (old, new) if nodeset is not None}
