"""Do what `rehearsal` decides: make, note and remove candidates and pods."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from coil.build import rehearsal as build
from coil.build.errors import BuildError
from coil.kinds.controller import plan, rehearsal
from coil.kinds.controller.rehearsal import Accept, Again, Begin, Doubt, Refuse, Verdict, Wait
from coil.kinds.controller.settling import QUIET_S, Settling
from coil.kinds.controller.snapshot import Snapshot
from coil.kinds.steps import Apply, Failed
from coil.kube import core
from coil.kube.client import Client, PatchKind
from coil.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from coil.kube.views import PodView
from coil.support.clock import utc_now
from coil.support.log import get_logger
from coil.support.objects import ObjectKey

FIELD_MANAGER = "coil-rehearsal"

log = get_logger("controller-controller")


class Trial(NamedTuple):
    """A configuration to try: its generation, the name of the trial, and its files."""

    generation: str
    name: str
    files: Mapping[str, str]


class Rehearsing:
    """Tries configurations. Its memory holds what no object tells, and losing it costs one try more."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._settling = Settling()
        self._unmade: dict[ObjectKey, tuple[str, str, float]] = {}

    def forget(self, key: ObjectKey) -> None:
        """The Controller is gone, or nothing of it is to be tried."""
        self._settling.done(key)
        self._unmade.pop(key, None)

    async def step(self, snapshot: Snapshot, config: Apply | Failed) -> Verdict | None:
        """Bring the trial of the wanted configuration one step further; None when none can be built.

        Raises:
            ApiError: the candidate or a pod could not be written or deleted.
        """
        if isinstance(config, Failed) or snapshot.controller.spec.external:
            return None
        data: dict[str, str] = config.wanted["data"]
        target, live = plan.target(snapshot, config), snapshot.live.config
        wanted = target.generation if target is not None else ""
        same = live is None or plan.generation(live.data) == plan.generation(data)
        if same or not rehearsal.needed(snapshot.controller, snapshot.pods, snapshot.complaint):
            await self._clear(snapshot)
            return Verdict(generation=wanted, open=True)
        trial = Trial(wanted, plan.trial(snapshot, data), plan.all_files(snapshot, data))
        found = snapshot.candidate, snapshot.rehearsals
        step = rehearsal.next_step(trial.name, trial.files, *found, utc_now())
        if not isinstance(step, Begin):
            self.forget(snapshot.controller.metadata.key)
        return await self._do(snapshot, trial, step)

    async def _do(self, snapshot: Snapshot, trial: Trial, step: rehearsal.Step) -> Verdict:
        wanted = trial.generation
        match step:
            case Accept():
                log.info("configuration accepted", generation=wanted)
                return Verdict(generation=wanted, open=True, tried=True)
            case Begin():
                return await self._begin(snapshot, trial)
            case Wait(seconds=seconds):
                return Verdict(generation=wanted, again_s=seconds)
            case Refuse(message=message, noted=noted):
                if not noted:
                    log.warning("configuration refused", generation=wanted, message=message)
                    await self._write_candidate(snapshot, trial, message)
                await self._delete(snapshot.rehearsals)
                return Verdict(generation=wanted, reason=rehearsal.REFUSED_REASON, message=message)
            case Doubt(reason=reason, message=message, seconds=seconds):
                return Verdict(generation=wanted, reason=reason, message=message, again_s=seconds)
            case Again(pod=pod):
                await self._delete([pod])
                return Verdict(generation=wanted)

    async def _begin(self, snapshot: Snapshot, trial: Trial) -> Verdict:
        """Not before the wanted configuration has settled; what the server refuses is tried again later."""
        key, now = snapshot.controller.metadata.key, asyncio.get_running_loop().time()
        if hold := self._settling.remaining(key, trial.name, now, QUIET_S):
            return Verdict(generation=trial.generation, again_s=hold)
        unmade, why, until = self._unmade.get(key, ("", "", 0.0))
        if unmade == trial.name and now < until:
            return _not_made(trial, why, until - now)
        await self._delete(snapshot.rehearsals)
        try:
            await self._make(snapshot, trial)
        except (ApiError, BuildError) as error:
            why = (error.message if isinstance(error, ApiError) else "") or str(error)
            self._unmade[key] = (trial.name, why, now + rehearsal.RETRY_S)
            return _not_made(trial, why, rehearsal.RETRY_S)
        log.info("rehearsal begun", generation=trial.generation)
        return Verdict(generation=trial.generation, again_s=rehearsal.LIMIT_S)

    async def _make(self, snapshot: Snapshot, trial: Trial) -> None:
        """Candidate and pod; a pod of that name that still goes brings the pass back with its end."""
        await self._write_candidate(snapshot, trial)
        manifest = build.pod(snapshot.controller, trial.name, trial.files)
        namespace = snapshot.controller.metadata.namespace
        with suppress(AlreadyExists):
            await self._client.create(core.PODS, manifest, namespace, field_manager=FIELD_MANAGER)

    async def _write_candidate(self, snapshot: Snapshot, trial: Trial, refused: str = "") -> None:
        body = build.candidate(snapshot.controller, trial.name, trial.files, refused)
        await self._client.patch(
            core.CONFIG_MAP_MANIFESTS,
            body["metadata"]["name"],
            body,
            body["metadata"]["namespace"],
            kind=PatchKind.APPLY,
            field_manager=FIELD_MANAGER,
            force=True,
        )

    async def _clear(self, snapshot: Snapshot) -> None:
        """Remove what a trial left: the live ConfigMap has its outcome."""
        self.forget(snapshot.controller.metadata.key)
        await self._delete(snapshot.rehearsals)
        candidate = snapshot.candidate
        if candidate is None or candidate.metadata.deletion_timestamp is not None:
            return
        meta = candidate.metadata
        with suppress(NotFound, Conflict):
            await self._client.delete(core.CONFIG_MAP_MANIFESTS, meta.name, meta.namespace, uid=meta.uid)

    async def _delete(self, pods: Iterable[PodView]) -> None:
        """Only pods that a rehearsal made: whatever else has their label is somebody else's."""
        for pod in pods:
            meta = pod.metadata
            if pod.terminating or not rehearsal.trial_of(pod):
                continue
            with suppress(NotFound, Conflict):
                await self._client.delete(core.PODS, meta.name, meta.namespace, uid=meta.uid, grace_seconds=0)


def _not_made(trial: Trial, why: str, again_s: float) -> Verdict:
    message = f"the rehearsal pod could not be made: {why}"
    return Verdict(generation=trial.generation, reason="RehearsalNotMade", message=message, again_s=again_s)
