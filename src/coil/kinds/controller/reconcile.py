"""One pass over a Controller: observe, plan, act, report (spec: control-plane 5 and 11.2)."""

import asyncio
from collections.abc import Sequence

from coil.api.conditions import find
from coil.api.controller import Controller
from coil.api.meta import Condition
from coil.kinds import steps
from coil.kinds.children import Children
from coil.kinds.controller import follow, plan, report
from coil.kinds.controller.active import active_pod
from coil.kinds.controller.applying import Applying
from coil.kinds.controller.differing import NODES_DIFFER, Differing
from coil.kinds.controller.live import Outcome, nodes_with, present
from coil.kinds.controller.observe import Observer
from coil.kinds.controller.rehearsal import REFUSED_REASON, Verdict
from coil.kinds.controller.rehearsing import Rehearsing
from coil.kinds.controller.settling import LONE_S, QUIET_S, Settling
from coil.kinds.controller.snapshot import Snapshot
from coil.kinds.controller.watches import watch
from coil.kinds.frame import control
from coil.kinds.patience import Patience
from coil.kinds.record import Record
from coil.kinds.resources import CONTROLLERS
from coil.kinds.runtime import Runtime
from coil.kinds.status import RECONCILED, Problem, is_news, reconciled, status_change, write_status
from coil.kinds.steps import Apply, Failed, PassFailedError, record_problems
from coil.kube.client import Client
from coil.kube.controller import DONE, After, Result
from coil.kube.errors import ApiError
from coil.support.clock import utc_now
from coil.support.objects import ObjectKey

NAME = "controller-controller"

PERIOD_S = 30.0
"""Longest time between two passes (spec: control-plane 11.2)."""

NODES_S = 1.0
"""Time between two looks while nodes still run with an earlier configuration."""
NODES_LIMIT_S = 60.0
"""Nodes that have not come for a configuration after this time are looked at no oftener than usual."""

EVENTFUL = (NODES_DIFFER, REFUSED_REASON)
"""Reasons of `ConfigurationLive` that somebody has to do something about."""


def register(runtime: Runtime) -> None:
    """Reconcile Controllers."""
    observer = Observer(runtime)
    record = runtime.recorder(NAME, CONTROLLERS)
    reconciler = Reconciler(observer, runtime.client, record, Applying(runtime.client, runtime.clusters))
    queue = control(runtime, NAME, "controller", reconciler.reconcile, observer.stores)
    watch(observer, runtime.clusters, queue)
    follow.register(runtime, observer)


class Reconciler:
    """Brings the children, the active label and the conditions of a Controller in line with its spec."""

    def __init__(self, observer: Observer, client: Client, record: Record, applying: Applying) -> None:
        self._observer = observer
        self._client = client
        self._record = record
        self._children = Children(client, record)
        self._settling = Settling()
        self._applying = applying
        self._patience = Patience()
        self._rehearsing = Rehearsing(client)
        self._differing = Differing()

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass.

        Raises:
            PassFailedError: a step failed in a way that trying again may cure.
        """
        snapshot = await self._observer.snapshot(key)
        if snapshot is None or snapshot.controller.metadata.deletion_timestamp is not None:
            self._settling.done(key)
            self._applying.forget(key)
            self._patience.forget(key)
            self._rehearsing.forget(key)
            self._differing.forget(key)
            return DONE
        snapshot = plan.with_unbrought(snapshot, self._applying.unbrought(key))
        problems: list[Problem] = []
        config, verdict = await self._rehearse(snapshot, plan.config_step(snapshot), problems)
        kept = verdict is not None and not verdict.open
        hold = self._hold(snapshot, "" if kept else plan.rollout(snapshot, config))
        planned = plan.steps(snapshot, config, hold=kept or bool(hold))
        problems += await steps.run(self._children, snapshot.controller, planned)
        outcome = await self._apply(snapshot, config, verdict, problems) if not hold else None
        await self._report(snapshot, problems, outcome, verdict, settled=not hold)
        if any(problem.retry for problem in problems):
            raise PassFailedError(problems)
        return After(hold or next_look(outcome, utc_now().timestamp(), verdict))

    async def _rehearse(
        self, snapshot: Snapshot, config: Apply | Failed, problems: list[Problem]
    ) -> tuple[Apply | Failed, Verdict | None]:
        """The wanted configuration once slurmctld takes it, until then the live one."""
        live = snapshot.live.config
        try:
            verdict = await self._rehearsing.step(snapshot, config)
        except ApiError as error:
            problems.append(Problem(plan.REHEARSAL, "WriteFailed", str(error), retry=True))
            verdict = Verdict(generation="")
        if isinstance(config, Failed) or live is None or verdict is None or verdict.open:
            return config, verdict
        if verdict.reason:
            problems.append(Problem(plan.REHEARSAL, verdict.reason, verdict.message))
        return plan.held(config, live), verdict

    def _hold(self, snapshot: Snapshot, wanted: str) -> float:
        """Seconds to wait before the wanted configuration is rolled out."""
        key = snapshot.controller.metadata.key
        if not wanted:
            self._settling.done(key)
            return 0.0
        lone = snapshot.live.stateful_set is None and not snapshot.nodesets
        now = asyncio.get_running_loop().time()
        return self._settling.remaining(key, wanted, now, LONE_S if lone else QUIET_S)

    async def _apply(
        self,
        snapshot: Snapshot,
        config: Apply | Failed,
        verdict: Verdict | None,
        problems: list[Problem],
    ) -> Outcome | None:
        """Bring the written configuration to the running slurmctld.

        One that is only kept is not, once files of other ConfigMaps are no longer those that belong to it.
        """
        target = plan.target(snapshot, config)
        if verdict is not None and not verdict.open and not plan.goes_with(snapshot, config):
            return None
        if target is None or any(problem.step == plan.CONFIG for problem in problems):
            return None
        key = snapshot.controller.metadata.key
        if self._patience.lasts(key) and snapshot.slurm is None:
            return None
        name = active_pod(snapshot.controller.metadata.name, snapshot.pods)
        active = next((pod for pod in snapshot.pods if pod.metadata.name == name), None)
        try:
            tried = verdict is not None and verdict.tried
            return await self._applying.step(key, target, snapshot.pods, active, settled=tried)
        except ApiError as error:
            problems.append(Problem("Live Configuration", "PatchFailed", str(error), retry=True))
            return None

    async def _report(
        self,
        snapshot: Snapshot,
        problems: Sequence[Problem],
        outcome: Outcome | None,
        verdict: Verdict | None,
        *,
        settled: bool,
    ) -> None:
        """Write the conditions. While a configuration settles nothing new is said about the steps."""
        controller, live = snapshot.controller, snapshot.controller.status.conditions
        told = reconciled(controller, problems) if settled or problems else find(live, RECONCILED)
        if told is not None and is_news(live, told):
            record_problems(self._record, controller, problems)
        rejected = report.configuration_rejected(controller, verdict, live)
        if rejected is not None and rejected.status == "True" and is_news(live, rejected):
            self._record(controller, "Warning", "ConfigurationRejected", "Rehearse", rejected.message)
        attention = report.needs_attention(controller, plan.advice(snapshot), live)
        if attention is not None and attention.status == "True" and is_news(live, attention):
            self._record(controller, "Warning", "Advice", "Check", attention.message)
        conditions = [
            told,
            report.available(
                controller,
                snapshot.pods,
                active_pod(controller.metadata.name, snapshot.pods),
                report.obstacles(snapshot.accounting, snapshot.complaint),
            ),
            report.slurm_reachable(controller, snapshot.slurm, live),
            attention,
            rejected,
            await self._configuration_live(controller, outcome),
        ]
        ours = [condition for condition in conditions if condition is not None]
        await write_status(self._client, CONTROLLERS, controller, status_change(live, ours, utc_now()))

    async def _configuration_live(self, controller: Controller, outcome: Outcome | None) -> Condition | None:
        """What was said stays while nothing is known, or only the log of a slurmd might say it otherwise."""
        key, said = controller.metadata.key, find(controller.status.conditions, report.CONFIGURATION_LIVE)
        differing = self._differing.nodes(key, outcome, said, asyncio.get_running_loop().time())
        if outcome is None:
            return said
        before = said.message if said is not None else ""
        if differing and before.startswith(report.nodes_differ(outcome, differing)):
            return said
        words = await self._observer.refusal(key.namespace, differing[0]) if differing else ""
        told = report.configuration_live(controller, outcome, differing, words)
        if told.reason in EVENTFUL and (said is None or said.reason != told.reason):
            self._record(controller, "Warning", told.reason, "Configure", told.message)
        return told


def next_look(outcome: Outcome | None, now: float, verdict: Verdict | None = None) -> float:
    """Seconds until the next pass: sooner while a configuration is on its way or nodes come for it.

    `now` is in Unix seconds.
    """
    usual = PERIOD_S
    if verdict is not None and verdict.again_s is not None:
        usual = min(usual, verdict.again_s)
    if outcome is None:
        return usual
    if not outcome.live:
        return usual if outcome.again_s is None else min(usual, outcome.again_s)
    if outcome.since is None or now - outcome.since > NODES_LIMIT_S:
        return usual
    here = present(outcome.nodes or {})
    return usual if nodes_with(outcome.since, here) == len(here) else min(usual, NODES_S)
