"""Let the client Service follow the active slurmctld (spec: control-plane 5.6; docs: high-availability).

A controller of its own, so that nothing else a Controller needs, and no Slurm that hangs, holds it up. It
asks each slurmctld itself: only the active one answers 2xx to `/readyz`. Slurm's own `ping` cannot tell:
there a standby responds as well. It is asked only when no slurmctld can be reached from here.
"""

import asyncio
from collections.abc import Iterable

from coil.api import keys, names
from coil.api.controller import Controller as ControllerObject
from coil.api.defaults import with_defaults
from coil.kinds.controller.active import LabelChange, Role, choose, label_changes
from coil.kinds.controller.observe import PODS_OF, Observer, controller_of
from coil.kinds.frame import control
from coil.kinds.runtime import Runtime
from coil.kube import core
from coil.kube.client import Client
from coil.kube.controller import DONE, After, Result
from coil.kube.errors import Conflict, NotFound
from coil.kube.views import PodView
from coil.slurm import http1
from coil.slurm.clusters import Clusters
from coil.slurm.errors import SlurmError
from coil.slurm.transport import Wire
from coil.support.log import get_logger
from coil.support.objects import JsonObject, ObjectKey

NAME = "controller-active"

LOOK_S = 1.0
"""Time between two looks at a slurmctld with backups."""
ANSWER_S = 1.0
"""Longest wait for one slurmctld's answer; they are asked at once."""
PING_S = 3.0
"""Longest wait for slurmrestd's answer."""
_SUCCESS = range(200, 300)

log = get_logger(NAME)


class Follower:
    """Moves the label of each Controller's pods."""

    def __init__(
        self, observer: Observer, client: Client, clusters: Clusters, wire: Wire = http1.exchange
    ) -> None:
        self._observer = observer
        self._wire = wire
        self._client = client
        self._clusters = clusters
        self._active_at: dict[ObjectKey, float] = {}

    async def reconcile(self, key: ObjectKey) -> Result:
        """One look.

        Raises:
            ApiError: a pod could not be patched.
        """
        found = self._observer.controllers.get(*key)
        if found is None or found.metadata.deletion_timestamp is not None or found.spec.external:
            self._active_at.pop(key, None)
            return DONE
        controller = with_defaults(found)
        pods = tuple(self._observer.pods.by_index(PODS_OF, str(key)))
        for change in label_changes(pods, await self._chosen(controller, pods)):
            await self._label(key.namespace, change)
        return DONE if controller.replicas == 1 else After(LOOK_S)

    async def _chosen(self, controller: ControllerObject, pods: tuple[PodView, ...]) -> str | None:
        key, replicas = controller.metadata.key, controller.replicas
        roles = await self._roles(key, pods) if replicas > 1 else {}
        now = asyncio.get_running_loop().time()
        since = self._active_at.setdefault(key, now)
        if Role.ACTIVE in roles.values():
            self._active_at[key] = since = now
        return choose(key.name, pods, replicas, roles, now - since)

    async def _roles(self, key: ObjectKey, pods: tuple[PodView, ...]) -> dict[str, Role]:
        """What each pod's slurmctld says, or slurmrestd when a network policy keeps us away from all."""
        roles, cluster = await ask(pods, self._wire), self._clusters.get(key)
        if cluster is None or set(roles.values()) != {Role.SILENT}:
            return roles
        try:
            async with asyncio.timeout(PING_S):
                answers = [ping.responding for ping in await cluster.client.ping()]
        except (SlurmError, TimeoutError):
            return roles
        # Their order is that of the SlurmctldHost lines; the first that responds counts as the active one.
        first = names.controller_pod(key.name, answers.index(True)) if True in answers else ""
        return {name: Role.ACTIVE if name == first else Role.SILENT for name in roles}

    async def _label(self, namespace: str, change: LabelChange) -> None:
        """A pod that is gone, or replaced by one of the same name, is left to the pass it will cause."""
        value = "true" if change.active else None
        body: JsonObject = {"metadata": {"uid": change.uid, "labels": {keys.LABEL_ACTIVE: value}}}
        try:
            await self._client.patch(core.PODS, change.pod, body, namespace)
        except (NotFound, Conflict):
            return
        log.info("active label moved", pod=change.pod, active=change.active)


async def ask(pods: Iterable[PodView], wire: Wire) -> dict[str, Role]:
    """What the slurmctld of each pod says, by pod name."""
    asked = tuple(pods)
    roles = await asyncio.gather(*(_role(pod, wire) for pod in asked))
    return {pod.metadata.name: role for pod, role in zip(asked, roles, strict=True)}


async def _role(pod: PodView, wire: Wire) -> Role:
    address = pod.status.pod_ip
    if not address:
        return Role.SILENT
    try:
        request = http1.encode("GET", "/readyz", "slurmctld", {}, None)
        async with asyncio.timeout(ANSWER_S):
            answer = await wire(address, keys.PORT_SLURMCTLD, request)
    except (OSError, TimeoutError, http1.ProtocolError):
        return Role.SILENT
    return Role.ACTIVE if answer.status in _SUCCESS else Role.STANDBY


def register(runtime: Runtime, observer: Observer) -> None:
    """Follow the active slurmctld of all Controllers."""
    follower = Follower(observer, runtime.client, runtime.clusters)
    stores = (observer.controllers, observer.pods)
    queue = control(runtime, NAME, "controller", follower.reconcile, stores)
    observer.controllers.on_event(lambda change: queue.add(change.key))
    observer.pods.on_event(lambda change: queue.add_all(controller_of(change.latest)))
