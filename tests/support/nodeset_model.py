"""An operator process that plans with stale caches against `nodeset_world`.

It sees the world through a pod cache and a view of Slurm that lag behind, acts through requests that may
fail, and may die before any request. Every write is judged against the truth at that very moment; one that
breaks an invariant raises `Harm`.
"""

from collections.abc import Iterable, Iterator

from coil.api import keys
from coil.kinds.nodeset import held
from coil.kinds.nodeset.actions import (
    Action,
    CreatePod,
    DeletePod,
    Drain,
    PatchConditions,
    PatchPod,
    Remember,
    Resume,
    SetComment,
    Undrain,
)
from coil.kinds.nodeset.drain import Cause
from coil.kinds.nodeset.identity import slurm_name
from coil.kinds.nodeset.joining import join
from coil.kinds.nodeset.memory import Memory
from coil.kinds.nodeset.plan import Plan, make_plan
from coil.kinds.nodeset.rollout import scaled
from coil.kinds.nodeset.snapshot import Fault, Known, Snapshot, mostly_absent
from coil.kinds.nodeset.watches import observe_pod
from coil.kube.store import Change, ChangeKind
from coil.kube.views import PodView
from coil.slurm.view import ClusterView
from coil.support.objects import ObjectKey
from coil.support.reasons import REASON_PREFIX
from tests.support import workers as build
from tests.support.nodeset_world import HOST_NETWORK, POOL, Harm, Pod, Record, World

KEY = ObjectKey(build.NAMESPACE, "gpu")


class Crash(Exception):
    """The operator's process dies before its next request."""


class Operator:
    """One process of the operator."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.restart()

    def restart(self) -> None:
        """A new process: it remembers nothing and lists everything before it works."""
        world = self.world
        self.memory = Memory(lambda: world.clock)
        self.cache: dict[str, PodView] = {n: world.pod_view(p) for n, p in world.pods.items()}
        self.view = world.view()
        self.in_step = True
        """Nothing but the operator changed pods since the cache showed them all."""

    def see_pod(self, name: str) -> None:
        """The watch delivers the newest state of one pod."""
        old, pod = self.cache.get(name), self.world.pods.get(name)
        new = None if pod is None else self.world.pod_view(pod)
        if old is not None and new is not None and old.metadata.uid != new.metadata.uid:
            self._deliver(Change(ChangeKind.DELETED, old, None))
            old = None
        if old == new:
            return
        kind = ChangeKind.MODIFIED
        if old is None or new is None:
            kind = ChangeKind.ADDED if old is None else ChangeKind.DELETED
        self._deliver(Change(kind, old, new))

    def see_all(self) -> None:
        """The watch catches up."""
        for name in sorted({*self.cache, *self.world.pods}):
            self.see_pod(name)
        self.in_step = True

    def poll(self) -> None:
        """The poller reads Slurm; when it gets no answer the last view counts no more."""
        self.view = self.world.view()

    def _deliver(self, change: Change[PodView]) -> None:
        if change.new is None:
            self.cache.pop(change.latest.metadata.name)
        else:
            self.cache[change.new.metadata.name] = change.new
        observe_pod(self.memory.expectations, KEY, change)

    def settled(self) -> bool:
        """The cache shows all that the process did; before that a pass only reports."""
        return self.memory.settled(KEY, self.cache.values())

    def snapshot(self, view: ClusterView | None, *, fresh: bool) -> Snapshot:
        """What the process knows."""
        world = self.world
        slurm = build.SILENT
        if view is not None:
            doubt = "; ".join(view.node_doubts)
            slurm = Known(observed_at=view.observed_at, fresh=fresh, node_count=len(view.nodes), doubt=doubt)
        joined = join(self.cache.values(), world.host_view, view, lambda pod: slurm_name(pod) in world.rivals)
        workers = self.memory.with_absences(KEY, joined, slurm)
        return Snapshot(
            nodeset=world.nodeset(),
            revision=world.revision,
            workers=workers,
            mostly_absent=mostly_absent(workers),
            slurm=slurm,
            held=held.read(world.nodeset().metadata.annotations),
            settled=self.settled(),
            nodes=world.host_views() if world.daemon else (),
            placement=None if world.fault else POOL,
            fault=Fault(reason="ControllerMissing", message="none") if world.fault else None,
        )

    def decide(self) -> Plan:
        """Plan, asking Slurm when the plan wants it."""
        plan = make_plan(self.snapshot(self.view, fresh=False), self.world.clock)
        if plan.ask_slurm:
            self.poll()
            plan = make_plan(self.snapshot(self.view, fresh=True), self.world.clock)
        if plan.ask_slurm:
            raise Harm("a plan from a fresh view asks Slurm again")
        return plan

    def run_pass(self, faults: Iterator[str]) -> Plan:
        """Plan and act. `faults` says for each request what happens: ok, fail, crash, or job and then ok."""
        plan = self.decide()
        before = self.world.drained_by_us()
        in_step = self.in_step
        deletions = [action for action in plan.actions if isinstance(action, DeletePod)]
        creations = [action for action in plan.actions if isinstance(action, CreatePod)]
        if deletions:
            keys_ = [ObjectKey(KEY.namespace, action.name) for action in deletions]
            self.memory.expectations.expect_deletions(KEY, keys_)
        if creations:
            self.memory.expectations.expect_creations(KEY, len(creations))
        hands = Hands(self, plan, in_step=in_step)
        try:
            for action in plan.actions:
                hands.do(action, next(faults))
        except Crash:
            self.restart()
            return plan
        for action in deletions:
            if action.uid not in hands.deleted:
                key = ObjectKey(KEY.namespace, action.name)
                self.memory.expectations.deletion_observed(KEY, key)
        self.memory.expectations.creation_observed(KEY, len(creations) - hands.created)
        self._judge_update(before, in_step=in_step)
        return plan

    def _judge_update(self, before: set[str], *, in_step: bool) -> None:
        """I4: the pass took no worker out of service beyond the limit."""
        world, after = self.world, self.world.out_for_update()
        limit = scaled(world.limit, world.wanted)
        if in_step and after - before and world.unavailable() + len(after) > limit:
            raise Harm(
                f"I4: {sorted(after)} are drained for the update while {world.unavailable()} of"
                f" {world.wanted} are unavailable; at most {limit} may be out"
            )


class Hands:
    """Carries out the actions of one pass against the world, and judges each."""

    def __init__(self, operator: Operator, plan: Plan, *, in_step: bool) -> None:
        self.operator = operator
        self.world = operator.world
        self.scaled_in = {uid for uid, cause in plan.scaling.condemned.items() if cause is Cause.SCALE_IN}
        self.in_step = in_step
        self.deleted = set[str]()
        self.created = 0
        self._stopped = set[type]()
        self._unmarked = set[str]()
        self._forgotten = set[str]()
        self._versions: dict[str, str] = {}

    def do(self, action: Action, fault: str) -> None:
        """One request."""
        if fault == "crash":
            raise Crash
        if fault == "job":
            self.world.start_job(self.world.counter)
        if type(action) in self._stopped or fault == "fail":
            self._stopped.add(type(action))
            self._not_done(action)
            return
        match action:
            case CreatePod():
                self._create(action)
            case DeletePod():
                self._delete(action)
            case PatchPod():
                self._patch(action)
            case PatchConditions():
                self._conditions(action)
            case Remember():
                self.world.held = action.annotation
            case _:
                if not self.world.slurm_up:
                    self._stopped.add(type(action))
                    return
                self._slurm(action)

    def _not_done(self, action: Action) -> None:
        match action:
            case PatchPod(marks=node):
                self._unmarked.add(node)
            case Remember(pods=uids):
                self._forgotten |= set(uids)
            case _:
                pass

    def _create(self, action: CreatePod) -> None:
        world = self.world
        if world.fault:
            raise Harm("a pod was made although none can be built")
        if action.name in world.pods:
            self._stopped.add(CreatePod)
            return
        pod = Pod(
            name=f"{action.name}{world.number()}" if world.daemon else action.name,
            uid=f"uid-{world.number()}",
            revision=world.revision,
            created=world.clock,
            slurm=action.hostname or ("" if world.kind == HOST_NETWORK else action.name),
            pinned=action.node,
            annotations={keys.ANNOTATION_POD_CORDON: "true"} if action.cordoned else {},
            users_cordon=action.cordoned,
        )
        if world.daemon:
            self._judge_daemon(pod)
        world.pods[pod.name] = pod
        place = world.place(pod)
        if place in world.lost_cordons and not action.cordoned:
            raise Harm(f"I3: the user's cordon of {place} ended with the pod before")
        world.lost_cordons.discard(place)
        self.created += 1

    def _judge_daemon(self, new: Pod) -> None:
        """One worker for each machine that should have one, each with a name of its own."""
        world = self.world
        if new.pinned not in world.eligible():
            raise Harm(f"a worker was made for {new.pinned}, which takes none")
        for pod in world.pods.values():
            ended = pod.phase in ("Failed", "Succeeded")
            if not (ended and pod.terminating) and world.place(pod) == new.pinned:
                raise Harm(f"a second worker was made for {new.pinned}")
            if not ended and pod.slurm == new.slurm:
                raise Harm(f"a worker was made with the host name of {pod.name}, {pod.slurm}")

    def _delete(self, action: DeletePod) -> None:
        world, pod = self.world, self.world.pods.get(action.name)
        stale = pod is not None and action.resource_version not in (None, str(pod.version))
        if pod is None or pod.uid != action.uid or stale or pod.uid in self._forgotten:
            return
        self.deleted.add(pod.uid)
        if pod.terminating:
            return
        self._judge_deletion(pod)
        if action.cause is Cause.UPDATE and world.serves(pod) and self.in_step:
            limit = scaled(world.limit, world.wanted)
            if world.unavailable() + 1 > limit and len(world.pods) <= world.wanted:
                raise Harm(
                    f"I4: {pod.name} was deleted for the update, {world.unavailable()} were out already"
                )
        if pod.users_cordon and action.cause is Cause.UPDATE:
            world.lost_cordons.add(world.place(pod))
        pod.terminating = True
        world.touch(pod)
        if not pod.node:
            del world.pods[pod.name]

    def _judge_deletion(self, pod: Pod) -> None:
        """I1 and I2 against the truth."""
        world = self.world
        if world.busy(pod.slurm) and pod.running:
            raise Harm(f"I1: {pod.name} was deleted while a job runs there")
        if pod.phase in ("Failed", "Succeeded") or not pod.ran:
            return
        if not world.slurm_up:
            raise Harm(f"I2: {pod.name} was deleted while Slurm is silent")
        record = world.records.get(pod.slurm)
        if record is None:
            if world.doubts:
                raise Harm(f"I2: {pod.name} was deleted because of a partial list")
            return
        if not record.drain:
            raise Harm(f"I1: {pod.name} was deleted without being drained")

    def _patch(self, action: PatchPod) -> None:
        pod = self.world.pods.get(action.name)
        if pod is None or pod.uid != action.uid or str(pod.version) != action.resource_version:
            self._not_done(action)
            return
        for live, changes in ((pod.annotations, action.annotations), (pod.labels, action.labels)):
            for key, value in changes.items():
                if value is None:
                    live.pop(key, None)
                else:
                    live[key] = value
        if pod.users_cordon and pod.annotations.get(keys.ANNOTATION_POD_CORDON) != "true":
            raise Harm(f"I3: the user's cordon of {pod.name} was undone")
        if pod.users_cordon and keys.ANNOTATION_POD_CORDON_CAUSE in pod.annotations:
            raise Harm(f"I3: the user's cordon of {pod.name} was made our own")
        self._touched(pod, action.resource_version)

    def _conditions(self, action: PatchConditions) -> None:
        pod = self.world.pods.get(action.name)
        if pod is None or pod.uid != action.uid:
            return
        pod.conditions.update({condition.type: condition for condition in action.wanted})
        for kind in action.removed:
            pod.conditions.pop(kind, None)
        self._touched(pod, action.resource_version)

    def _touched(self, pod: Pod, planned: str) -> None:
        before = self._versions.get(pod.uid, planned)
        self.world.touch(pod)
        self._versions[pod.uid] = str(pod.version)
        self.operator.memory.changed(KEY, pod.uid, before, str(pod.version))

    def _slurm(self, action: Action) -> None:
        match action:
            case Drain(nodes=nodes, reason=reason):
                for name, record in self._known(n for n in nodes if n not in self._unmarked):
                    self._drain(name, record, reason)
            case Undrain(nodes=nodes):
                for name, record in self._known(nodes):
                    self._undrain(name, record)
            case Resume(nodes=nodes):
                for name, record in self._known(nodes):
                    self._judge_resume(name, record)
                    record.base, record.drain, record.reason = "IDLE", False, ""
            case SetComment(node=node, comment=comment):
                for _, record in self._known((node,)):
                    record.comment = comment
            case _:
                raise Harm(f"unexpected {action}")

    def _drain(self, name: str, record: Record, reason: str) -> None:
        reason = reason or record.reason
        if record.foreign and reason != record.foreign:
            raise Harm(f"I3: reason {record.foreign!r} of {name} was replaced by {reason!r}")
        if record.reason.startswith("Not responding") and reason != record.reason:
            raise Harm(f"Slurm's own reason of the silent {name} was replaced")
        pod = self.world.pod_of(name)
        if "pending termination" in reason and pod is not None:
            marked = keys.ANNOTATION_POD_CORDON in pod.annotations or pod.uid in self.scaled_in
            if self.in_step and pod.ran and not marked:
                raise Harm(f"I12: {name} was drained although neither its pod nor the replicas say why")
        record.drain, record.reason, record.reason_at = True, reason, self.world.clock
        if not reason.startswith((REASON_PREFIX, "Not responding")):
            record.foreign = reason  # put back from memory: it is still its author's to take off

    def _undrain(self, name: str, record: Record) -> None:
        if record.foreign:
            raise Harm(f"I3: {name} was undrained although somebody else holds it")
        self._judge_return(name)
        record.drain = False
        if record.base != "DOWN":
            record.reason = ""

    def _judge_resume(self, name: str, record: Record) -> None:
        if record.foreign:
            raise Harm(f"I3: {name} was resumed although somebody else holds it")
        self._judge_return(name)
        pod = self.world.pod_of(name)
        if self.in_step and (pod is None or pod.terminating):
            raise Harm(f"{name} was resumed although its pod ends")

    def _judge_return(self, name: str) -> None:
        if name in self.world.rivals:
            raise Harm(f"I1: {name} returned to service although another NodeSet's pod has that name")

    def _known(self, names: Iterable[str]) -> list[tuple[str, Record]]:
        return [(name, self.world.records[name]) for name in names if name in self.world.records]
