"""Read the caches, and what a slurmctld that does not start says, into one Snapshot."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coil.api import keys, names
from coil.api.controller import Controller
from coil.api.defaults import with_defaults
from coil.build import controller as build
from coil.kinds import podlog
from coil.kinds.controller.applying import LOG_LINES, LOGFILE
from coil.kinds.controller.differing import refused
from coil.kinds.controller.monitors import Monitors
from coil.kinds.controller.rekeying import Has, JwtKey
from coil.kinds.controller.report import Slurm
from coil.kinds.controller.snapshot import NO_RESTAPI, Children, Snapshot
from coil.kinds.resources import ACCOUNTINGS, CONTROLLERS, NODESETS, RESTAPIS
from coil.kinds.runtime import Runtime
from coil.kube import core
from coil.kube.store import Store
from coil.kube.views import PodView
from coil.slurm.clusters import Cluster
from coil.slurm.errors import Unauthorized
from coil.support.objects import ObjectKey

PODS_OF = "controller/pods"
REHEARSALS_OF = "controller/rehearsals"
NODESETS_OF = "controller/nodesets"


class Observer:
    """Gives the Snapshot of a Controller."""

    def __init__(self, runtime: Runtime) -> None:
        self._clusters = runtime.clusters
        self._client = runtime.client
        self._monitors = Monitors(runtime.client)
        self.controllers = runtime.store(CONTROLLERS)
        self.nodesets = runtime.store(NODESETS)
        self.accountings = runtime.store(ACCOUNTINGS)
        self.restapis = runtime.store(RESTAPIS)
        self.secrets = runtime.store(core.SECRETS)
        self.config_maps = runtime.store(core.CONFIG_MAP_MANIFESTS)
        self.services = runtime.store(core.SERVICES)
        self.stateful_sets = runtime.store(core.STATEFUL_SETS)
        self.claims = runtime.store(core.CLAIMS)
        self.pods = runtime.store(core.PODS)
        self.stores: Sequence[Store[Any]] = (
            self.controllers,
            self.nodesets,
            self.accountings,
            self.restapis,
            self.secrets,
            self.config_maps,
            self.services,
            self.stateful_sets,
            self.claims,
            self.pods,
        )
        self.pods.add_index(PODS_OF, lambda pod: [str(key) for key in controller_of(pod)])
        self.pods.add_index(REHEARSALS_OF, lambda pod: [str(key) for key in rehearsed_for(pod)])
        self.nodesets.add_index(NODESETS_OF, lambda nodeset: [str(nodeset.controller_key)])

    async def snapshot(self, key: ObjectKey) -> Snapshot | None:
        """What is known now; None when there is no such Controller."""
        found = self.controllers.get(*key)
        if found is None:
            return None
        controller = with_defaults(found)
        spec, namespace = controller.spec, key.namespace
        pods = tuple(self.pods.by_index(PODS_OF, str(key)))
        accounting, claim = spec.accounting_ref, spec.persistence and spec.persistence.existing_claim
        secrets, slurm = self._secrets(controller), self._slurm(key)
        return Snapshot(
            controller=controller,
            nodesets=tuple(self.nodesets.by_index(NODESETS_OF, str(key))),
            unreadable=tuple(self.nodesets.unknown(namespace)),
            accounting=self.accountings.get(namespace, accounting.name) if accounting else None,
            config_maps=self._config_maps(controller),
            secrets=secrets,
            claim=self.claims.get(namespace, claim) if claim else None,
            live=self._children(controller),
            monitor=await self._monitors.find(controller),
            pods=pods,
            complaint=await self._complaint(pods),
            candidate=self.config_maps.get(namespace, names.controller_candidate(key.name)),
            rehearsals=tuple(self.pods.by_index(REHEARSALS_OF, str(key))),
            slurm=slurm,
            jwt_key=JwtKey()
            if slurm is NO_RESTAPI
            else jwt_key(controller, self._clusters.get(key), secrets),
        )

    def _config_maps(self, controller: Controller) -> dict[str, dict[str, str]]:
        refs = [ref.name for ref in build.references(controller)]
        if controller.spec.jwks_key_ref is not None:
            refs.append(controller.spec.jwks_key_ref.name)
        found = ((name, self.config_maps.get(controller.metadata.namespace, name)) for name in refs)
        return {name: config_map.data for name, config_map in found if config_map is not None}

    def _secrets(self, controller: Controller) -> dict[str, dict[str, bytes]]:
        refs = [ref.name for ref in (controller.spec.slurm_key_ref, controller.jwt_ref) if ref is not None]
        found = ((name, self.secrets.get(controller.metadata.namespace, name)) for name in refs)
        return {name: secret.data for name, secret in found if secret is not None}

    def _children(self, controller: Controller) -> Children:
        namespace, name = controller.metadata.key
        return Children(
            internal_service=self.services.get(namespace, names.controller_internal(name)),
            service=self.services.get(namespace, names.controller(name)),
            config=self.config_maps.get(namespace, names.controller_config(name)),
            stateful_set=self.stateful_sets.get(namespace, names.controller(name)),
        )

    async def _complaint(self, pods: Iterable[PodView]) -> str:
        """Why slurmctld ends at each start; until it has read where to log, it says so on stderr."""
        for pod in pods:
            if pod.ready or pod.terminating or not podlog.restarts(pod, keys.SLURMCTLD):
                continue
            for container in (keys.SLURMCTLD, LOGFILE):
                if text := await podlog.complaint(self._client, pod, container, fatal=True):
                    return text
        return ""

    async def refusal(self, namespace: str, node: str) -> str:
        """Why the slurmd of a node goes on with an earlier configuration, in its own words."""
        for pod in self.pods.list(namespace):
            names = {pod.spec.hostname or pod.metadata.name, pod.spec.node_name * pod.spec.host_network}
            if pod.metadata.labels.get(keys.LABEL_NAME) == keys.SLURMD and node in names:
                return refused(await podlog.tail(self._client, pod, keys.SLURMD, LOG_LINES))
        return ""

    def _slurm(self, key: ObjectKey) -> Slurm | None:
        if not any(
            restapi.spec.controller_ref.name == key.name for restapi in self.restapis.list(key.namespace)
        ):
            return NO_RESTAPI
        cluster = self._clusters.get(key)
        if cluster is None or not cluster.poller.tried:
            return None
        error, client = cluster.poller.health.error, cluster.client
        if error is not None:
            return Slurm("False", type(error).__name__, f"{client.base_url}: {error.reason}")
        version = f"Slurm {client.release}, data parser {client.data_parser}"
        return Slurm("True", "Answers", f"{client.base_url}: {version}")


def jwt_key(
    controller: Controller, cluster: Cluster | None, secrets: Mapping[str, Mapping[str, bytes]]
) -> JwtKey:
    """What is known about the JWT key of a slurmctld that a RestApi serves.

    A standby slurmctld takes no reconfigure: with backups nobody can tell all of them.
    """
    ref = controller.jwt_ref
    if controller.replicas > 1 or ref is None:
        return JwtKey()
    if cluster is None:
        return JwtKey(has=Has.WAITED)
    known, health = tuple(cluster.tokens.keys), cluster.poller.health
    wanted = secrets.get(ref.name, {}).get(ref.key, b"")
    if isinstance(health.error, Unauthorized) and wanted in known:
        return JwtKey(has=Has.REFUSED, known=known)
    has = Has.WANTED if health.ok and cluster.tokens.key == wanted else Has.WAITED
    return JwtKey(has=has, known=known)


def controller_of(pod: PodView) -> Iterable[ObjectKey]:
    """The Controller whose selector labels a pod has; none for other pods."""
    return _named(pod, keys.SLURMCTLD)


def rehearsed_for(pod: PodView) -> Iterable[ObjectKey]:
    """The Controller for which a configuration is tried in a pod; none for other pods."""
    return _named(pod, keys.REHEARSAL)


def _named(pod: PodView, application: str) -> Iterable[ObjectKey]:
    labels = pod.metadata.labels
    if labels.get(keys.LABEL_NAME) == application and labels.get(keys.LABEL_INSTANCE):
        yield ObjectKey(pod.metadata.namespace, labels[keys.LABEL_INSTANCE])
