"""One pass over a Controller: observe, plan, act, report (spec: control-plane 5 and 11.2)."""

import asyncio
from collections.abc import Sequence

from coil.api import keys
from coil.api.conditions import find
from coil.kinds import steps
from coil.kinds.children import Children
from coil.kinds.controller import plan, report
from coil.kinds.controller.active import LabelChange, choose, label_changes, labelled
from coil.kinds.controller.observe import Observer
from coil.kinds.controller.settling import LONE_S, QUIET_S, Settling
from coil.kinds.controller.snapshot import NO_RESTAPI, Snapshot
from coil.kinds.controller.watches import watch
from coil.kinds.record import Record
from coil.kinds.resources import CONTROLLERS
from coil.kinds.runtime import Runtime
from coil.kinds.status import RECONCILED, Problem, is_news, reconciled, status_change, write_status
from coil.kinds.steps import PassFailedError, record_problems
from coil.kube import core
from coil.kube.client import Client
from coil.kube.controller import DONE, After, Controller, Result
from coil.kube.errors import ApiError, Conflict, NotFound
from coil.support.clock import utc_now
from coil.support.log import get_logger
from coil.support.objects import JsonObject, ObjectKey

NAME = "controller-controller"

PERIOD_S = 30.0
"""Longest time between two passes (spec: control-plane 11.2)."""
TAKEOVER_S = 3.0
"""Time between two questions for the active slurmctld while none of several is known to be."""

log = get_logger(NAME)


def register(runtime: Runtime) -> None:
    """Reconcile Controllers."""
    observer = Observer(runtime)
    record = runtime.recorder(NAME, CONTROLLERS)
    reconciler = Reconciler(observer, runtime.client, record)
    controller = Controller(
        NAME, reconciler.reconcile, workers=runtime.workers("controller"), caches=observer.stores
    )
    watch(observer, runtime.clusters, controller.queue)
    runtime.add(controller)


class Reconciler:
    """Brings the children, the active label and the conditions of a Controller in line with its spec."""

    def __init__(self, observer: Observer, client: Client, record: Record) -> None:
        self._observer = observer
        self._client = client
        self._record = record
        self._children = Children(client, record)
        self._settling = Settling()

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass.

        Raises:
            PassFailedError: a step failed in a way that trying again may cure.
        """
        snapshot = await self._observer.snapshot(key)
        if snapshot is None or snapshot.controller.metadata.deletion_timestamp is not None:
            self._settling.done(key)
            return DONE
        config = plan.config_step(snapshot)
        hold = self._hold(snapshot, plan.rollout(snapshot, config))
        planned = plan.steps(snapshot, config, hold)
        problems = await steps.run(self._children, snapshot.controller, planned)
        chosen = _chosen(snapshot)
        problems += await self._label(snapshot, chosen)
        await self._report(snapshot, chosen, problems, settled=not hold)
        if any(problem.retry for problem in problems):
            raise PassFailedError(problems)
        return After(hold or period(snapshot))

    def _hold(self, snapshot: Snapshot, wanted: str) -> float:
        """Seconds to wait before the wanted configuration is rolled out."""
        key = snapshot.controller.metadata.key
        if not wanted:
            self._settling.done(key)
            return 0.0
        lone = snapshot.live.stateful_set is None and not snapshot.nodesets
        now = asyncio.get_running_loop().time()
        return self._settling.remaining(key, wanted, now, LONE_S if lone else QUIET_S)

    async def _label(self, snapshot: Snapshot, chosen: str | None) -> list[Problem]:
        namespace = snapshot.controller.metadata.namespace
        try:
            for change in label_changes(snapshot.pods, chosen):
                await self._label_one(namespace, change)
        except ApiError as error:
            return [Problem("Active Label", "PatchFailed", str(error), retry=True)]
        return []

    async def _label_one(self, namespace: str, change: LabelChange) -> None:
        """A pod that is gone, or replaced by one of the same name, is left to the pass it will cause."""
        value = "true" if change.active else None
        body: JsonObject = {"metadata": {"uid": change.uid, "labels": {keys.LABEL_ACTIVE: value}}}
        try:
            await self._client.patch(core.PODS, change.pod, body, namespace)
        except (NotFound, Conflict):
            return
        log.info("active label moved", pod=change.pod, active=change.active)

    async def _report(
        self, snapshot: Snapshot, chosen: str | None, problems: Sequence[Problem], *, settled: bool
    ) -> None:
        """Write the conditions. While a configuration settles nothing new is said about the steps."""
        controller, live = snapshot.controller, snapshot.controller.status.conditions
        told = reconciled(controller, problems) if settled or problems else find(live, RECONCILED)
        if told is not None and is_news(live, told):
            record_problems(self._record, controller, problems)
        attention = report.needs_attention(controller, plan.advice(snapshot), live)
        if attention is not None and attention.status == "True" and is_news(live, attention):
            self._record(controller, "Warning", "Advice", "Check", attention.message)
        conditions = [
            told,
            report.available(
                controller,
                snapshot.pods,
                chosen or labelled(snapshot.pods),
                report.obstacles(snapshot.accounting, snapshot.complaint),
            ),
            report.slurm_reachable(controller, snapshot.slurm, live),
            attention,
        ]
        ours = [condition for condition in conditions if condition is not None]
        await write_status(self._client, CONTROLLERS, controller, status_change(live, ours, utc_now()))


def _chosen(snapshot: Snapshot) -> str | None:
    controller = snapshot.controller
    if controller.spec.external:
        return None
    name = controller.metadata.name
    return choose(name, snapshot.pods, controller.replicas, snapshot.responding)


def period(snapshot: Snapshot) -> float:
    """Seconds until the next look: soon again while a backup may be about to take over."""
    if snapshot.controller.replicas == 1 or snapshot.slurm is NO_RESTAPI:
        return PERIOD_S
    settled = any(snapshot.responding or ()) and all(pod.ready for pod in snapshot.pods)
    return PERIOD_S if settled else TAKEOVER_S
