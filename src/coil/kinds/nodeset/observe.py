"""Read caches into one Snapshot. Nothing is asked of a server here."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from coil.api import keys, names
from coil.api.controller import Controller
from coil.api.defaults import with_defaults
from coil.api.nodeset import NodeSet
from coil.build.errors import BuildError
from coil.build.nodeset import PodInputs, PodTemplate, revision_hash, template
from coil.kinds.domain import cluster_domain
from coil.kinds.nodeset import companions, held
from coil.kinds.nodeset.claim import Claims, claim_pods
from coil.kinds.nodeset.eligibility import placement
from coil.kinds.nodeset.identity import slurm_name
from coil.kinds.nodeset.joining import has_ended, join
from coil.kinds.nodeset.memory import Memory
from coil.kinds.nodeset.prune import ghosts
from coil.kinds.nodeset.revisions import INVALID
from coil.kinds.nodeset.snapshot import Fault, Known, Slurm, Snapshot, Unknown, Worker, mostly_absent
from coil.kinds.patience import Patience
from coil.kinds.references import missing_controller
from coil.kinds.resources import CONTROLLERS, NODESETS
from coil.kinds.runtime import Runtime
from coil.kinds.steps import Step
from coil.kube import core
from coil.kube.resource import KubeObject
from coil.kube.store import Store
from coil.kube.views import ManifestView, PodView
from coil.slurm.clusters import Cluster
from coil.slurm.errors import SlurmError
from coil.slurm.view import ClusterView
from coil.support.objects import ObjectKey

OWNED = "nodeset/owner"
"""Index of pods by the uid of the NodeSet that controls them."""
LABELLED = "nodeset/instance"
"""Index of worker pods by namespace and the NodeSet that their labels name."""
ON_NODE = "nodeset/node"
"""Index of worker pods by the Kubernetes node they are on."""
BY_SLURM_NAME = "nodeset/slurm-name"
"""Index of worker pods by namespace and name of their Slurm node."""
OF_CLUSTER = "nodeset/controller"
"""Index of NodeSets by the Controller they refer to."""


STALE_S = 30.0
"""Seconds after which what Slurm said counts no more; longer than a pass waits for an answer."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot, and what acting on it needs."""

    snapshot: Snapshot
    claims: Claims
    companions: tuple[Step, ...]
    template: PodTemplate | None
    cluster: Cluster | None


class Observer:
    """The caches that a NodeSet is judged by."""

    def __init__(self, runtime: Runtime, memory: Memory) -> None:
        self._clusters = runtime.clusters
        self._options = runtime.options
        self._memory = memory
        self._patience = Patience()
        self._templates: dict[str, tuple[object, PodTemplate]] = {}
        self.nodesets = runtime.store(NODESETS)
        self.controllers = runtime.store(CONTROLLERS)
        self.pods = runtime.store(core.PODS)
        self.nodes = runtime.store(core.NODES)
        self.secrets = runtime.store(core.SECRETS)
        self.claims = runtime.store(core.CLAIMS)
        self.services = runtime.store(core.SERVICES)
        self.budgets = runtime.store(core.DISRUPTION_BUDGETS)
        self.config_maps = runtime.store(core.CONFIG_MAP_MANIFESTS)
        self.pods.add_index(OWNED, _owner_uid)
        self.pods.add_index(LABELLED, lambda pod: [str(key) for key in labelled_nodeset(pod)])
        self.pods.add_index(ON_NODE, _worker_node)
        self.pods.add_index(BY_SLURM_NAME, _by_slurm_name)
        self.nodesets.add_index(OF_CLUSTER, lambda nodeset: [str(nodeset.controller_key)])

    @property
    def stores(self) -> Sequence[Store[Any]]:
        """The caches that must be filled before the first pass."""
        return (
            self.nodesets,
            self.controllers,
            self.pods,
            self.nodes,
            self.secrets,
            self.claims,
            self.services,
            self.budgets,
            self.config_maps,
        )

    def nodeset(self, key: ObjectKey) -> NodeSet | None:
        """The NodeSet with the defaults that it leaves out."""
        found = self.nodesets.get(*key)
        return None if found is None else with_defaults(found)

    def observe(
        self, nodeset: NodeSet, in_effect: str | None = None, answer: ClusterView | SlurmError | None = None
    ) -> Observation:
        """What is known of a NodeSet.

        Args:
            nodeset: with its defaults.
            in_effect: the hash that pods of its current revision carry; None: the one it has by itself.
            answer: what Slurm, asked in this pass, said.
        """
        claims = claim_pods(nodeset, self._candidates(nodeset))
        cluster = self.cluster(nodeset)
        revision, made, fault = self._build(nodeset, in_effect)
        view, slurm = _slurm(cluster, answer, new=self._patience.lasts(nodeset.metadata.key))
        joined = self._join(nodeset, claims.pods, view)
        workers = self._memory.with_absences(nodeset.metadata.key, joined, slurm)
        snapshot = Snapshot(
            nodeset=nodeset,
            revision=revision,
            workers=workers,
            mostly_absent=mostly_absent(workers),
            slurm=slurm,
            settled=self._memory.settled(nodeset.metadata.key, (*claims.pods, nodeset)),
            under_way=self._memory.under_way(nodeset.metadata.key, claims.pods),
            fault=fault,
            ghosts=ghosts(view.nodes.values()) if view is not None and _prunes(nodeset) else (),
            nodes=tuple(self.nodes.list()) if nodeset.daemon or nodeset.spec.pin_to_node else (),
            placement=placement(made.spec) if made is not None else None,
            held=held.read(nodeset.metadata.annotations),
            claims=self._claims(nodeset, claims.pods),
            placed=self._memory.placed(nodeset.metadata.key),
            commented_at=self._memory.commented_at(nodeset.metadata.key),
            propagated_conditions=self._options.propagated_node_conditions,
        )
        return Observation(
            snapshot=snapshot,
            claims=claims,
            companions=tuple(companions.steps(nodeset, self._siblings(nodeset), self._live(nodeset))),
            template=made,
            cluster=cluster,
        )

    def cluster(self, nodeset: NodeSet) -> Cluster | None:
        """The Slurm cluster of the NodeSet; None while no client serves it."""
        return self._clusters.get(nodeset.controller_key)

    def forget(self, key: ObjectKey) -> None:
        """The NodeSet is gone."""
        self._memory.forget(key)
        self._patience.forget(key)
        self._templates.pop(str(key), None)

    def _join(
        self, nodeset: NodeSet, pods: Iterable[PodView], view: ClusterView | None
    ) -> tuple[Worker, ...]:
        return join(
            pods, lambda node: self.nodes.get("", node), view, lambda pod: self._used_elsewhere(nodeset, pod)
        )

    def _used_elsewhere(self, nodeset: NodeSet, pod: PodView) -> bool:
        """A pod of another NodeSet of the cluster has this Slurm name."""
        same = (key for name in _by_slurm_name(pod) for key in self.pods.by_index(BY_SLURM_NAME, name))
        rivals = (rival for rival in same if rival.metadata.uid != pod.metadata.uid and not has_ended(rival))
        return any(self._may_be_of_cluster(nodeset, rival) for rival in rivals)

    def _may_be_of_cluster(self, nodeset: NodeSet, rival: PodView) -> bool:
        """Whose NodeSet is not known may be of any cluster."""
        found = [self.nodesets.get(*key) for key in labelled_nodeset(rival)]
        return any(owner is None or owner.controller_key == nodeset.controller_key for owner in found)

    def _siblings(self, nodeset: NodeSet) -> list[NodeSet]:
        found = self.nodesets.by_index(OF_CLUSTER, str(nodeset.controller_key))
        return [item for item in found if item.metadata.deletion_timestamp is None]

    def _live(self, nodeset: NodeSet) -> companions.Live:
        namespace, cluster = nodeset.controller_key
        return companions.Live(
            service=self.services.get(namespace, names.worker_service(cluster)),
            budget=self.budgets.get(namespace, names.worker_budget(cluster)),
            ssh_config=self.config_maps.get(namespace, names.ssh_config(nodeset.metadata.name)),
        )

    def _candidates(self, nodeset: NodeSet) -> Iterable[PodView]:
        meta = nodeset.metadata
        owned = self.pods.by_index(OWNED, meta.uid)
        labelled = self.pods.by_index(LABELLED, str(meta.key))
        return {pod.metadata.uid: pod for pod in (*owned, *labelled)}.values()

    def _claims(self, nodeset: NodeSet, pods: Iterable[PodView]) -> dict[str, ManifestView]:
        if not nodeset.spec.volume_claim_templates:
            return {}
        sources = (volume.persistent_volume_claim for pod in pods for volume in pod.spec.volumes)
        wanted = {source.claim_name for source in sources if source is not None}
        found = ((name, self.claims.get(nodeset.metadata.namespace, name)) for name in wanted)
        return {name: claim for name, claim in found if claim is not None}

    def _build(self, nodeset: NodeSet, in_effect: str | None) -> tuple[str, PodTemplate | None, Fault | None]:
        """Revision, template, and why there is none; a NodeSet that cannot be built keeps its revision."""
        controller = self.controllers.get(*nodeset.controller_key)
        try:
            revision = in_effect or revision_hash(nodeset)
            if controller is None:
                return revision, None, _no_controller(nodeset)
            return revision, self._template(nodeset, with_defaults(controller), revision), None
        except BuildError as error:
            return nodeset.status.node_set_hash, None, Fault(reason=INVALID, message=str(error))

    def _template(self, nodeset: NodeSet, controller: Controller, revision: str) -> PodTemplate:
        """Built once for the same NodeSet and inputs."""
        inputs = PodInputs(
            controller=controller, cluster_domain=cluster_domain(), sssd_conf=self._sssd_conf(nodeset)
        )
        meta = nodeset.metadata
        made_from = (meta.uid, meta.generation, meta.labels, meta.annotations, inputs, revision)
        known = self._templates.get(str(meta.key))
        if known is None or known[0] != made_from:
            known = self._templates[str(meta.key)] = (made_from, template(nodeset, inputs, revision))
        return known[1]

    def _sssd_conf(self, nodeset: NodeSet) -> bytes | None:
        reference = nodeset.spec.ssh.sssd_conf_ref
        secret = self.secrets.get(nodeset.metadata.namespace, reference.name) if reference.name else None
        return None if secret is None else secret.data.get(reference.key)


def _no_controller(nodeset: NodeSet) -> Fault:
    missing = missing_controller(nodeset.spec.controller_ref.name)
    return Fault(reason=missing.reason, message=missing.message)


_NO_CLIENT = Unknown(
    reason="NoRestApi", message="no RestApi serves the Controller, or the key for its tokens is missing"
)


_NOT_YET = Unknown(reason="NotAskedYet", message="Slurm was not asked yet", not_yet=True)


def _slurm(
    cluster: Cluster | None, answer: ClusterView | SlurmError | None, *, new: bool
) -> tuple[ClusterView | None, Slurm]:
    """The view that counts and what it is worth; while reads fail none does."""
    if cluster is None:
        return None, _NOT_YET if new else _NO_CLIENT
    if answer is None and not cluster.poller.tried:
        return None, _NOT_YET
    age = cluster.poller.age()
    if answer is None and age is not None and age > STALE_S:
        # Every try takes so long that by its end nothing that rests on it could be done.
        return None, Unknown(reason="Unreachable", message=f"no answer of Slurm for {STALE_S:g} s")
    latest = answer or cluster.poller.health.error or cluster.poller.view
    if not isinstance(latest, ClusterView):
        return None, Unknown(reason=type(latest).__name__, message=str(latest))
    if latest.vanished:
        # What is left of the list may come from a slurmctld that does not know of any job.
        return None, Unknown(reason="IncompleteAnswer", message=latest.vanished)
    known = Known(
        observed_at=latest.observed_at,
        fresh=answer is not None,
        node_count=len(latest.nodes),
        peer=f"Slurm {cluster.client.release} answers with {cluster.client.data_parser}",
        doubt="; ".join((*latest.node_doubts, *latest.job_doubts)),
    )
    return latest, known


def _prunes(nodeset: NodeSet) -> bool:
    return nodeset.spec.prune_slurm_node_records != "Never"


def _owner_uid(pod: PodView) -> Iterable[str]:
    owner = pod.metadata.controller
    if owner is not None and owner.kind == "NodeSet":
        yield owner.uid


def labelled_nodeset(child: KubeObject) -> Iterable[ObjectKey]:
    """The NodeSet that the labels of a worker pod or of its claim name."""
    labels = child.metadata.labels
    if labels.get(keys.LABEL_NAME) == keys.SLURMD:
        yield ObjectKey(child.metadata.namespace, labels.get(keys.LABEL_INSTANCE, ""))


def _by_slurm_name(pod: PodView) -> Iterable[str]:
    name = slurm_name(pod)
    if name:
        yield f"{pod.metadata.namespace}/{name}"


def _worker_node(pod: PodView) -> Iterable[str]:
    if pod.spec.node_name and pod.metadata.labels.get(keys.LABEL_NAME) == keys.SLURMD:
        yield pod.spec.node_name
