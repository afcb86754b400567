"""Series about the state of the custom resources and of Slurm, read when they are scraped.

They come from the caches, so a scrape costs no request, and a resource that is gone leaves no series behind.
Alerts and boards stand on them: what a condition says can be watched for a whole Kubernetes cluster.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from coil.api.nodeset import NodeSet
from coil.api.token import Token
from coil.build.slurmconf import partitions
from coil.kinds.resources import ACCOUNTINGS, CONTROLLERS, LOGINSETS, NODESETS, RESTAPIS, TOKENS
from coil.kinds.runtime import Runtime
from coil.kube.resource import Resource
from coil.slurm.clusters import Clusters
from coil.slurm.demand import Wanted
from coil.support.clock import parse_time
from coil.support.objects import ObjectKey

_KINDS: tuple[Resource[Any], ...] = (CONTROLLERS, ACCOUNTINGS, RESTAPIS, NODESETS, LOGINSETS, TOKENS)
_OBJECT = ("namespace", "name")
_WORKERS = {
    "desired": "desired",
    "existing": "replicas",
    "ready": "ready_replicas",
    "available": "available_replicas",
    "updated": "updated_replicas",
}
_NODES = {
    "allocated": "slurm_allocated",
    "idle": "slurm_idle",
    "drain": "slurm_drain",
    "down": "slurm_down",
}


class StateCollector(Collector):
    """Collects from the caches and the Slurm views of one manager; make it before the caches run."""

    def __init__(self, runtime: Runtime) -> None:
        self._stores = {resource.kind: runtime.store(resource) for resource in _KINDS}
        self._nodesets, self._tokens = runtime.store(NODESETS), runtime.store(TOKENS)
        self._controllers = runtime.store(CONTROLLERS)
        self._clusters = runtime.clusters

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry would collect to find out, and the caches are not filled yet."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Every series as it is now."""
        yield _conditions({kind: store.list() for kind, store in self._stores.items()})
        nodesets = self._nodesets.list()
        yield _counts("coil_nodeset_workers", "Worker pods of a NodeSet, by state.", _WORKERS, nodesets)
        yield _counts("coil_nodeset_slurm_nodes", "Slurm nodes of a NodeSet, by state.", _NODES, nodesets)
        yield _tokens(self._tokens.list())
        yield from _clusters(self._clusters)
        yield from self._demand()

    def _demand(self) -> Iterator[Metric]:
        """What an autoscaler follows: 0 for a partition without jobs, nothing for a cluster never read."""
        labels = (*_OBJECT, "partition")
        total = GaugeMetricFamily(
            "coil_partition_nodes_wanted",
            "Nodes that jobs of the partition hold, and those that its pending jobs want beside them.",
            labels=labels,
        )
        pending = GaugeMetricFamily(
            "coil_partition_nodes_pending",
            "Nodes that the pending jobs of the partition want, unless something else than nodes keeps them.",
            labels=labels,
        )
        for key, cluster in self._clusters.items():
            controller, view = self._controllers.get(*key), cluster.poller.view
            if controller is None or view is None:
                continue
            for name in {*partitions(controller, self._nodesets.list()), *view.demand}:
                wanted = view.demand.get(name, Wanted())
                total.add_metric((*key, name), wanted.nodes)
                pending.add_metric((*key, name), wanted.pending)
        yield from (total, pending)


def _conditions(objects: Mapping[str, Iterable[Any]]) -> Metric:
    """What each condition says, by kind; a change of the reason is another series."""
    family = GaugeMetricFamily(
        "coil_condition",
        "1 for what each condition of a custom resource says now.",
        labels=("kind", *_OBJECT, "condition", "status", "reason"),
    )
    for kind, found in objects.items():
        for item in found:
            for told in item.status.conditions:
                family.add_metric((kind, *_where(item), told.type, told.status, told.reason), 1)
    return family


def _counts(name: str, text: str, members: Mapping[str, str], nodesets: Iterable[NodeSet]) -> Metric:
    """Counters of the status of NodeSets: label `state` to member."""
    family = GaugeMetricFamily(name, text, labels=(*_OBJECT, "state"))
    for nodeset in nodesets:
        for state, member in members.items():
            family.add_metric((*_where(nodeset), state), getattr(nodeset.status, member))
    return family


def _tokens(found: Iterable[Token]) -> Metric:
    """When each stored token ends; a Token without one has no series."""
    family = GaugeMetricFamily(
        "coil_token_expires_timestamp_seconds",
        "When the token in the Secret expires, Unix time.",
        labels=_OBJECT,
    )
    for token in found:
        try:
            end = parse_time(token.status.issued_at or "").timestamp() + token.lifetime_s
        except ValueError:  # none issued yet, or a lifetime that is no duration: the condition tells
            continue
        family.add_metric(_where(token), end)
    return family


def _clusters(registry: Clusters) -> Iterator[Metric]:
    """How well each Slurm cluster is known, by the Controller it belongs to."""
    reachable = GaugeMetricFamily(
        "coil_slurm_reachable", "1 while slurmrestd answers wholly.", labels=_OBJECT
    )
    age = GaugeMetricFamily("coil_slurm_view_age_seconds", "Age of the last whole answer.", labels=_OBJECT)
    draining = GaugeMetricFamily(
        "coil_slurm_nodes_draining",
        "Nodes that the operator drains and whose jobs it waits for.",
        labels=_OBJECT,
    )
    for key, cluster in registry.items():
        poller = cluster.poller
        reachable.add_metric(key, poller.health.ok)
        if (seconds := poller.age()) is not None:
            age.add_metric(key, seconds)
        if (view := poller.view) is not None:
            draining.add_metric(key, sum(node.ours and node.draining for node in view.nodes.values()))
    yield from (reachable, age, draining)


def _where(item: Any) -> ObjectKey:
    return ObjectKey(item.metadata.namespace, item.metadata.name)
