"""One pass over a NodeSet: observe, plan, act, report (spec: nodeset 9).

caches ──► observe ──► shared objects ──► plan ──► does it rest on Slurm? ──► ask ──► observe, plan again
                                                          │ no                          │
                                                          └─────────► act ◄─────────────┘
                                                                       │
                                                                     report

Nothing that may take long comes between Slurm's answer and what rests on it.
"""

import time
from collections.abc import Sequence

import msgspec

from coil.api.conditions import find
from coil.api.nodeset import NodeSet
from coil.kinds import steps
from coil.kinds.children import Children
from coil.kinds.frame import control
from coil.kinds.nodeset import report
from coil.kinds.nodeset.act import PODS, Means, perform, problem
from coil.kinds.nodeset.actions import SetComment, SetTopology
from coil.kinds.nodeset.freshness import Freshness
from coil.kinds.nodeset.maintain import Upkeep, finalize, look_after
from coil.kinds.nodeset.memory import Memory
from coil.kinds.nodeset.observe import Observation, Observer
from coil.kinds.nodeset.plan import Plan, make_plan
from coil.kinds.nodeset.pods import Pods
from coil.kinds.nodeset.reservation import concerns, with_reservation
from coil.kinds.nodeset.revisions import Revisions
from coil.kinds.nodeset.rollout import hashes
from coil.kinds.nodeset.slurmwrites import TOPOLOGY, SlurmWrites
from coil.kinds.nodeset.watches import Watches
from coil.kinds.record import Record
from coil.kinds.references import CONTROLLER_MISSING
from coil.kinds.resources import NODESETS
from coil.kinds.runtime import Runtime
from coil.kinds.status import RECONCILED, Problem, is_news
from coil.kinds.steps import PassFailedError, record_problems
from coil.kube.client import Client
from coil.kube.controller import DONE, After, Result
from coil.kube.errors import ApiError, Conflict, NotFound
from coil.kube.events import ObjectRef
from coil.kube.workset import Spacing
from coil.slurm.clusters import Cluster
from coil.slurm.errors import SlurmError
from coil.slurm.view import ClusterView
from coil.support.log import get_logger
from coil.support.objects import ObjectKey

NAME = "nodeset-controller"

CONFLICT = "ConflictingController"

SOON_S = 2.0
"""Time until a reservation that was just written, or what was left undone, is looked at."""

ASK_S = 20.0
"""Longest wait for Slurm's answer within a pass."""

SPACING = Spacing(most=1.0)
"""A pass looks at all workers: while a thousand of them start or go, one each second is enough."""

log = get_logger(NAME)


def register(runtime: Runtime) -> None:
    """Reconcile NodeSets."""
    memory = Memory()
    observer = Observer(runtime, memory)
    reconciler = Reconciler(observer, memory, runtime.client, runtime.recorder(NAME, NODESETS))
    queue = control(runtime, NAME, "nodeset", reconciler.reconcile, observer.stores, SPACING)
    propagated = runtime.options.propagated_node_conditions
    Watches(observer, memory, queue, propagated).connect(runtime.clusters)


class Reconciler:
    """Keeps the workers of NodeSets as wanted."""

    def __init__(self, observer: Observer, memory: Memory, client: Client, record: Record) -> None:
        self._observer = observer
        self._memory = memory
        self._client = client
        self._record = record
        self._children = Children(client, record)
        self._revisions = Revisions(client)

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass.

        Raises:
            PassFailedError: something failed in a way that trying again may cure.
        """
        nodeset = self._observer.nodeset(key)
        if nodeset is None:
            self._observer.forget(key)
            return DONE
        if nodeset.metadata.deletion_timestamp is not None:
            await finalize(nodeset, self._client, self._observer.cluster(nodeset))
            return DONE
        in_effect = await self._revisions.in_effect(nodeset)
        seen = self._observer.observe(nodeset, in_effect)
        problems = await steps.run(self._children, nodeset, seen.companions)
        problems += await self._keep_revisions(seen)
        decided = await self._decide(seen, in_effect)
        if decided is None:
            return After(SOON_S)
        seen, plan = decided
        freshness = Freshness(lambda: self._observer.cluster(seen.snapshot.nodeset) is seen.cluster)
        problems += await self._act(seen, plan, freshness)
        upkeep = await look_after(seen.snapshot, seen.cluster, self._client, self._memory, time.time())
        problems += upkeep.problems
        await self._report(seen, plan, problems, upkeep)
        if any(problem.retry for problem in problems):
            raise PassFailedError(problems)
        if plan.frees and not freshness.ran_out:
            return After(min(plan.requeue_after, self._memory.hurry_in(key)))
        soon = upkeep.changed or freshness.ran_out
        return After(min(plan.requeue_after, SOON_S) if soon else plan.requeue_after)

    async def _decide(self, seen: Observation, in_effect: str | None) -> tuple[Observation, Plan] | None:
        """What is known and what to do; None when NodeSet or cluster changed while Slurm was asked."""
        plan = make_plan(seen.snapshot, time.time())
        if not plan.ask_slurm or seen.cluster is None:
            return seen, plan
        answer = await _ask(seen.cluster)
        # Meanwhile the caches went on: look at everything anew.
        nodeset = self._observer.nodeset(seen.snapshot.nodeset.metadata.key)
        if nodeset is None or nodeset.metadata.deletion_timestamp is not None:
            return None
        if nodeset.metadata.generation != seen.snapshot.nodeset.metadata.generation:
            return None  # which revision is in effect may have to be asked
        if self._observer.cluster(nodeset) is not seen.cluster:
            return None
        seen = self._observer.observe(nodeset, in_effect, answer)
        return seen, make_plan(seen.snapshot, time.time())

    async def _act(self, seen: Observation, plan: Plan, freshness: Freshness) -> list[Problem]:
        nodeset = seen.snapshot.nodeset
        problems: list[Problem] = []
        for notice in plan.notices:
            pod = _pod(nodeset, notice.pod) if notice.pod else None
            self._record(nodeset, notice.type, notice.reason, notice.action, notice.note, pod)
        pods = Pods(self._client, self._record, self._memory, nodeset)
        slurm = SlurmWrites(seen.cluster.client) if seen.cluster is not None else None
        actions = (*seen.claims.adopt, *seen.claims.release, *plan.actions)
        means = Means(
            pods=pods,
            freshness=freshness,
            slurm=slurm,
            template=seen.template,
            goes_on=plan.scaling.goes_on,
        )
        problems += await perform(actions, means)
        self._remember_topology(seen, plan, problems)
        if any(isinstance(action, SetComment) for action in plan.actions):
            self._memory.commented(nodeset.metadata.key, time.time())
        if seen.snapshot.fault is not None:
            problems.append(Problem(PODS, seen.snapshot.fault.reason, seen.snapshot.fault.message))
        problems += [Problem(PODS, "HostnameRefused", refusal) for refusal in plan.scaling.refusals]
        problems += report.shared_names(seen.snapshot)
        problems += report.not_starting(seen.snapshot)
        return [*problems, *(_conflict(name) for name in plan.conflicts)]

    def _remember_topology(self, seen: Observation, plan: Plan, problems: Sequence[Problem]) -> None:
        if any(problem.step == TOPOLOGY for problem in problems):
            return
        sets = [action for action in plan.actions if isinstance(action, SetTopology)]
        written = {node: action.topology for action in sets for node in action.nodes}
        self._memory.place(seen.snapshot.nodeset.metadata.key, seen.snapshot.workers, written)

    async def _keep_revisions(self, seen: Observation) -> list[Problem]:
        snapshot = seen.snapshot
        if seen.template is None:
            return []
        try:
            await self._revisions.keep(snapshot.nodeset, snapshot.revision, hashes(snapshot))
        except ApiError as error:
            return [problem("Revisions", error)]
        return []

    async def _report(
        self, seen: Observation, plan: Plan, problems: Sequence[Problem], upkeep: Upkeep
    ) -> None:
        """Write the status if it changed; of a problem that the live one tells of, no event is made again."""
        nodeset = seen.snapshot.nodeset
        wanted = report.status(seen.snapshot, plan, problems, time.time())
        if upkeep.known or not concerns(nodeset):
            conditions = with_reservation(nodeset, wanted.conditions, upkeep.held)
            wanted = msgspec.structs.replace(wanted, conditions=conditions)
        told = find(wanted.conditions, RECONCILED)
        if told is not None and is_news(nodeset.status.conditions, told):
            record_problems(self._record, nodeset, problems)
            self._tell_missing_controller(seen)
            for conflict in plan.conflicts:
                note = _conflict(conflict).message
                self._record(nodeset, "Warning", CONFLICT, "Info", note)
        patch = report.status_patch(nodeset.status, wanted)
        if not patch:
            return
        meta = nodeset.metadata
        try:
            await self._client.patch(
                NODESETS,
                meta.name,
                {"status": patch},
                meta.namespace,
                subresource="status",
                resource_version=meta.resource_version,
            )
        except (NotFound, Conflict) as error:
            log.debug("the NodeSet changed meanwhile; its next pass reports", error=str(error))

    def _tell_missing_controller(self, seen: Observation) -> None:
        nodeset, fault = seen.snapshot.nodeset, seen.snapshot.fault
        if fault is not None and fault.reason == CONTROLLER_MISSING:
            note = f"Failed to get Controller ({nodeset.controller_key}): {fault.message}"
            self._record(nodeset, "Warning", "ControllerRefFailed", "Info", note)


def _conflict(claim: str) -> Problem:
    message = f"claim {claim} is controlled by another object: its retention policy is not applied"
    return Problem("Claims", CONFLICT, message)


async def _ask(cluster: Cluster) -> ClusterView | SlurmError:
    """What Slurm says now. No answer is an answer too: that nothing is known."""
    try:
        return await cluster.poller.refresh(ASK_S)
    except SlurmError as error:
        return error


def _pod(nodeset: NodeSet, name: str) -> ObjectRef:
    return ObjectRef(api_version="v1", kind="Pod", namespace=nodeset.metadata.namespace, name=name)
