"""Do what `live` decides: one step in each pass, and remember how far each Controller has come."""

import asyncio

import msgspec

from coil.api import keys
from coil.kinds import podlog
from coil.kinds.controller.differing import refused
from coil.kinds.controller.live import (
    FILES_S,
    NO_WAY,
    Live,
    Outcome,
    Progress,
    Reconfigure,
    Refresh,
    Target,
    Wait,
    next_step,
)
from coil.kinds.controller.settling import QUIET_S, Settling
from coil.kube import core
from coil.kube.client import Client
from coil.kube.errors import Conflict, NotFound
from coil.kube.views import PodView
from coil.slurm.clusters import Cluster, Clusters
from coil.slurm.errors import SlurmError
from coil.slurm.wire import RunningConfiguration
from coil.support.log import get_logger
from coil.support.objects import JsonObject, ObjectKey

ASK_S = 2.0
"""Longest wait for Slurm within one pass."""
KEY_TRIES = 5
"""After so many, some 10 s, the kubelet does not bring the key: it keeps an immutable Secret that was made
anew as long as a pod of its node uses it (measured)."""
UNHEARD_TRIES = 2
"""A slurmctld that does not run with the configuration after so many is asked for its reasons."""
LOG_LINES = 200
"""How far back a daemon's log is read."""
LOGFILE = "logfile"
"""The container that prints slurmctld's log."""
RETRY_S = 2.0
"""Next try after Slurm did not answer."""

SILENT = "Slurm does not answer"
UNDER_WAY = "slurmctld is about to read it"

log = get_logger("controller-controller")


class _Known(msgspec.Struct, frozen=True):
    """What was found live, and on which run of which pod."""

    target: Target
    run: tuple[str, int]
    since: int | None


class Applying:
    """Applies configurations; its memory only saves questions, nothing is lost with it."""

    def __init__(self, client: Client, clusters: Clusters) -> None:
        self._client = client
        self._clusters = clusters
        self._settling = Settling()
        self._progress: dict[ObjectKey, Progress] = {}
        self._known: dict[ObjectKey, _Known] = {}
        self._unbrought: dict[ObjectKey, bytes] = {}
        self._settled: dict[ObjectKey, str] = {}

    def forget(self, key: ObjectKey) -> None:
        """The Controller is gone."""
        self._settling.done(key)
        self._progress.pop(key, None)
        self._known.pop(key, None)
        self._unbrought.pop(key, None)
        self._settled.pop(key, None)

    def unbrought(self, key: ObjectKey) -> bytes:
        """The JWT key that does not reach the running pods; empty when there is none."""
        return self._unbrought.get(key, b"")

    async def step(
        self,
        key: ObjectKey,
        target: Target,
        pods: tuple[PodView, ...],
        active: PodView | None,
        *,
        settled: bool = False,
    ) -> Outcome:
        """Bring the target one step further; one that has `settled` is not waited for again.

        Raises:
            ApiError: a pod could not be patched.
        """
        cluster, known = self._clusters.get(key), self._known.get(key)
        if settled:
            self._settled[key] = target.generation
        run = _run(active)
        if known is not None and (known.target, known.run) == (target, run):
            return self._live(target, known.since, cluster)
        if active is None or active.terminating:
            return Outcome(target.generation, live=False, message="there is no active slurmctld pod")
        if cluster is None:
            await self._refresh_blindly(key, target, pods)
            return Outcome(target.generation, live=False, message=NO_WAY)
        if not cluster.poller.health.ok:
            # Asking again would only hold up other Controllers; its health turning brings this one back.
            await self._refresh_blindly(key, target, pods)
            return Outcome(target.generation, live=False, message=SILENT)
        try:
            async with asyncio.timeout(ASK_S):
                return await self._ask_and_do(key, target, cluster, pods, active)
        except (SlurmError, TimeoutError):
            await self._refresh_blindly(key, target, pods)
            # How it fails differs from try to try, and `SlurmReachable` tells that once.
            return Outcome(target.generation, live=False, message=SILENT, again_s=RETRY_S)

    async def _ask_and_do(
        self,
        key: ObjectKey,
        target: Target,
        cluster: Cluster,
        pods: tuple[PodView, ...],
        active: PodView,
    ) -> Outcome:
        running, run = await cluster.client.configuration(), _run(active)
        now = asyncio.get_running_loop().time()
        keyed = target.key in {b"", cluster.tokens.key}
        step = next_step(target, running, self._progress.get(key), pods, now, keyed=keyed)
        match step:
            case Live(told=told):
                return self._found(key, _Known(target, run, _since(running) if told else None), cluster)
            case Wait(seconds=seconds):
                return Outcome(target.generation, live=False, message=UNDER_WAY, again_s=seconds)
            case Refresh(tries=tries) as refresh:
                fresh = tries == 1 and self._settled.get(key) != target.generation
                hold = self._settling.remaining(key, target.generation, now, QUIET_S) if fresh else 0.0
                if hold:
                    return Outcome(target.generation, live=False, message=UNDER_WAY, again_s=hold)
                if tries > UNHEARD_TRIES and (words := await self._refusal(active)):
                    return Outcome(target.generation, live=False, message=words, refused=True)
                await self._refresh(key, target, refresh, pods)
                if tries > KEY_TRIES and not keyed:
                    self._unbrought[key] = target.key
                return Outcome(target.generation, live=False, message=UNDER_WAY, again_s=FILES_S)
            case Reconfigure():
                # A slurmctld that refuses gives no answer: it has been told all the same.
                self._progress[key] = msgspec.structs.replace(self._progress[key], reconfigured_at=now)
                await cluster.client.reconfigure()
                log.info("slurmctld reconfigured", generation=target.generation)
                if not keyed:
                    # The sooner it is known which key it has, the shorter are holders of tokens refused.
                    await cluster.client.configuration()
                return Outcome(target.generation, live=False, message=UNDER_WAY, again_s=0.1)

    async def _refusal(self, active: PodView) -> str:
        """Why slurmctld went on with the configuration before; no rehearsal knows what slurmdbd does.

        It is not told again: its log keeps the answer, and whoever mends it there reconfigures.
        """
        for container in (keys.SLURMCTLD, LOGFILE):
            if words := refused(await podlog.tail(self._client, active, container, LOG_LINES)):
                return words
        return ""

    def _found(self, key: ObjectKey, known: _Known, cluster: Cluster) -> Outcome:
        self._settling.done(key)
        self._progress.pop(key, None)
        self._known[key] = known
        log.info("configuration live", generation=known.target.generation)
        return self._live(known.target, known.since, cluster)

    def _live(self, target: Target, since: int | None, cluster: Cluster | None) -> Outcome:
        view = cluster.poller.view if cluster is not None else None
        return Outcome(target.generation, live=True, since=since, nodes=view.nodes if view else None)

    async def _refresh(
        self, key: ObjectKey, target: Target, refresh: Refresh, pods: tuple[PodView, ...]
    ) -> None:
        for pod in pods:
            await self._annotate(pod, refresh.value)
        self._progress[key] = Progress(
            generation=target.generation,
            tries=refresh.tries,
            refreshed_at=asyncio.get_running_loop().time(),
        )

    async def _refresh_blindly(self, key: ObjectKey, target: Target, pods: tuple[PodView, ...]) -> None:
        """Without Slurm's answer the files are renewed at least.

        A slurmctld that died of its configuration needs the mended ones before it is started again; the
        sidecar of `inplaceReconfigure` finds them by itself.
        """
        progress = self._progress.get(key)
        if progress is None or progress.generation != target.generation:
            await self._refresh(key, target, Refresh(target.generation, 1), pods)

    async def _annotate(self, pod: PodView, value: str) -> None:
        """A pod that is gone, or replaced by one of the same name, is left to the pass it will cause."""
        meta = pod.metadata
        body: JsonObject = {
            "metadata": {"uid": meta.uid, "annotations": {keys.ANNOTATION_LIVE_CONFIG: value}}
        }
        if meta.annotations.get(keys.ANNOTATION_LIVE_CONFIG) == value:
            return
        try:
            await self._client.patch(core.PODS, meta.name, body, meta.namespace)
        except (NotFound, Conflict):
            return


def _since(running: RunningConfiguration | None) -> int | None:
    return None if running is None else running.since


def _run(pod: PodView | None) -> tuple[str, int]:
    """Names one run of slurmctld."""
    if pod is None:
        return "", 0
    statuses = (status for status in pod.status.container_statuses if status.name == keys.SLURMCTLD)
    return pod.metadata.uid, next((status.restart_count for status in statuses), 0)
