"""Random clusters, failing requests, stale caches, restarts at any point (invariants I1-I4, I6-I8, I12).

The model judges every write of the operator when it is made (`tests.support.nodeset_model`). When a run
ends, all trouble ends too, and the NodeSet must become what it should be and then stay silent.
COIL_EXAMPLES=1000 makes it look longer.
"""

from collections.abc import Iterator
from itertools import chain, repeat

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from coil.api import keys
from coil.kinds.nodeset.drain import own_cause
from coil.kinds.nodeset.plan import Plan
from tests.support.nodeset_model import Operator
from tests.support.nodeset_world import Pod, Record, World

FAULTS = st.lists(st.sampled_from(["ok", "ok", "job", "fail", "crash"]), max_size=12)
"""What becomes of each request of a pass; with `job` a job starts somewhere just before it."""

WHICH = st.integers(min_value=0, max_value=50)
ROUNDS = 80


class NodeSetMachine(RuleBasedStateMachine):
    """The environment's moves and the operator's passes, in any order."""

    @initialize(replicas=st.integers(0, 5), limit=st.integers(1, 3), busy=st.integers(0, 31))
    def begin(self, replicas: int, limit: int, busy: int) -> None:
        """A cluster that has settled, some of its workers busy."""
        self.world = World(replicas, limit, "rev-0")
        self.operator = Operator(self.world)
        for _ in range(6):
            self.advance()
        assert self.is_as_wanted(), self.describe()
        for index, pod in enumerate(self.pods()):
            if busy >> index & 1:
                self.world.jobs[self.world.number()] = pod.name

    def pods(self) -> list[Pod]:
        return [self.world.pods[name] for name in sorted(self.world.pods)]

    def pick(self, which: int, *, running: bool = False) -> Pod | None:
        pods = [pod for pod in self.pods() if not running or pod.running]
        return pods[which % len(pods)] if pods else None

    def disturb(self, pod: Pod) -> None:
        """The environment changes a pod: the cache is behind now."""
        self.world.touch(pod)
        self.operator.in_step = False

    # The operator

    @rule(faults=FAULTS)
    def work(self, faults: list[str]) -> None:
        self.operator.run_pass(chain(faults, repeat("ok")))

    @rule(which=WHICH)
    def cache_sees_one(self, which: int) -> None:
        names = sorted({*self.operator.cache, *self.world.pods})
        if names:
            self.operator.see_pod(names[which % len(names)])

    @rule(faults=FAULTS)
    def catch_up_and_work(self, faults: list[str]) -> None:
        self.operator.see_all()
        self.operator.poll()
        self.operator.run_pass(chain(faults, repeat("ok")))

    @rule(spare=st.integers(0, 3))
    def kubelets_and_slurmds_work(self, spare: int) -> None:
        """All but `spare` pods take their next step."""
        self.operator.in_step = False
        for pod in self.pods()[spare:]:
            self.step(pod)

    @rule()
    def cache_sees_all(self) -> None:
        self.operator.see_all()

    @rule()
    def poll(self) -> None:
        self.operator.poll()

    @rule()
    def restart(self) -> None:
        self.operator.restart()

    @rule(seconds=st.sampled_from([1, 5, 31, 61, 301]))
    def time_passes(self, seconds: int) -> None:
        self.world.clock += seconds

    # Kubernetes

    @rule(which=WHICH)
    def schedule(self, which: int) -> None:
        pod = self.pick(which)
        free = [h for h in self.world.hosts if h not in {p.node for p in self.pods()} | self.world.cordoned]
        if pod is not None and not pod.node and free:
            pod.node = free[which % len(free)]
            self.disturb(pod)

    @rule(which=WHICH)
    def start(self, which: int) -> None:
        pod = self.pick(which)
        if pod is not None and pod.node and pod.phase == "Pending" and not pod.terminating:
            pod.phase, pod.ran, pod.waiting = "Running", True, None
            self.disturb(pod)

    @rule(which=WHICH)
    def pull_fails(self, which: int) -> None:
        pod = self.pick(which)
        if pod is not None and pod.node and pod.phase == "Pending":
            pod.waiting = "ImagePullBackOff"
            self.disturb(pod)

    @rule(which=WHICH)
    def turn_ready(self, which: int) -> None:
        pod = self.pick(which, running=True)
        if pod is not None and not pod.ready and pod.revision not in self.world.broken:
            pod.ready, pod.ready_since = True, self.world.clock
            self.disturb(pod)

    @rule(which=WHICH)
    def comes_alive_unseen(self, which: int) -> None:
        """A pod that could not start does, registers and gets a job before any cache shows it."""
        pod = self.pick(which)
        if pod is not None and pod.node and pod.phase == "Pending" and not pod.terminating:
            pod.phase, pod.ran, pod.ready, pod.ready_since = "Running", True, True, self.world.clock
            self.disturb(pod)
            if self.world.slurm_up and pod.name not in self.world.records:
                self.world.records[pod.name] = Record()
                self.world.jobs[self.world.number()] = pod.name

    @rule(which=WHICH)
    def turn_unready(self, which: int) -> None:
        pod = self.pick(which, running=True)
        if pod is not None and pod.ready:
            pod.ready = False
            self.disturb(pod)

    @rule(which=WHICH)
    def evict(self, which: int) -> None:
        pod = self.pick(which, running=True)
        if pod is not None:
            self.world.stop_daemon(pod)
            pod.phase, pod.ready = "Failed", False
            self.disturb(pod)

    @rule(which=WHICH)
    def user_deletes(self, which: int) -> None:
        pod = self.pick(which)
        if pod is not None and not pod.terminating:
            pod.terminating = True
            self.disturb(pod)

    @rule(which=WHICH)
    def says_good_bye(self, which: int) -> None:
        pod = self.pick(which, running=True)
        if pod is not None and pod.terminating:
            self.world.stop_daemon(pod)

    @rule(which=WHICH)
    def ends(self, which: int) -> None:
        pod = self.pick(which)
        if pod is not None and pod.terminating:
            self.world.stop_daemon(pod)
            pod.gone = True
            del self.world.pods[pod.name]
            self.operator.in_step = False

    @rule(which=WHICH)
    def cordon_host(self, which: int) -> None:
        self.world.cordoned.add(self.world.hosts[which % len(self.world.hosts)])

    @rule()
    def uncordon_hosts(self) -> None:
        self.world.cordoned.clear()

    @rule(which=WHICH)
    def user_cordons(self, which: int) -> None:
        pod = self.pick(which)
        if pod is not None and keys.ANNOTATION_POD_CORDON not in pod.annotations:
            pod.annotations[keys.ANNOTATION_POD_CORDON] = "true"
            pod.annotations.pop(keys.ANNOTATION_POD_CORDON_CAUSE, None)
            pod.users_cordon = True
            self.disturb(pod)

    @rule(which=WHICH)
    def user_uncordons(self, which: int) -> None:
        pod = self.pick(which)
        if pod is not None and pod.users_cordon:
            pod.annotations.pop(keys.ANNOTATION_POD_CORDON, None)
            pod.users_cordon = False
            self.disturb(pod)

    # The user

    @rule(replicas=st.integers(0, 6))
    def scale(self, replicas: int) -> None:
        self.world.replicas = replicas

    @rule(revision=st.sampled_from(["rev-0", "rev-1", "rev-2"]))
    def update(self, revision: str) -> None:
        self.world.revision = revision

    @rule(revision=st.sampled_from(["rev-1", "rev-2"]))
    def break_revision(self, revision: str) -> None:
        self.world.broken.add(revision)

    @rule(broken=st.booleans())
    def controller_goes_or_comes(self, *, broken: bool) -> None:
        self.world.fault = broken

    # Slurm

    @precondition(lambda self: self.world.slurm_up)
    @rule(which=WHICH)
    def register(self, which: int) -> None:
        pod = self.pick(which, running=True)
        if pod is not None and not pod.terminating:
            self.world.records.setdefault(pod.name, Record()).silent = False

    @precondition(lambda self: self.world.slurm_up)
    @rule(which=WHICH)
    def start_job(self, which: int) -> None:
        self.world.start_job(which)

    @rule(which=WHICH)
    def end_job(self, which: int) -> None:
        if self.world.jobs:
            del self.world.jobs[sorted(self.world.jobs)[which % len(self.world.jobs)]]

    @rule(which=WHICH)
    def goes_silent(self, which: int) -> None:
        name, record = self.record(which)
        if record is not None and record.base != "DOWN":
            record.base, record.silent = "DOWN", True
            record.reason = record.reason or "Not responding"
            record.reason_at = self.world.clock
            self.world.drop_jobs(name)

    @rule(which=WHICH, reason=st.sampled_from(["bad fan", "xid 79"]))
    def admin_drains(self, which: int, reason: str) -> None:
        _, record = self.record(which)
        if record is not None:
            record.drain, record.reason, record.foreign = True, reason, reason
            record.reason_at = self.world.clock

    @rule(which=WHICH)
    def admin_resumes(self, which: int) -> None:
        _, record = self.record(which)
        if record is not None:
            record.drain, record.base, record.reason, record.foreign = False, "IDLE", "", ""

    @rule(which=WHICH)
    def admin_deletes_record(self, which: int) -> None:
        name, record = self.record(which)
        if record is not None and not self.world.busy(name):
            del self.world.records[name]

    @rule(up=st.booleans())
    def slurm_turns(self, *, up: bool) -> None:
        self.world.slurm_up = up

    @rule(partial=st.booleans())
    def answers_partially(self, *, partial: bool) -> None:
        self.world.doubts = ("one node could not be read",) if partial else ()

    def record(self, which: int) -> tuple[str, Record | None]:
        names = sorted(name for name in self.world.records if name != "other-0")
        return (
            (names[which % len(names)], self.world.records[names[which % len(names)]])
            if names
            else ("", None)
        )

    # The end of all trouble

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.heal()
        for _ in range(ROUNDS):
            if not self.advance().actions and self.is_as_wanted():
                break
        assert self.is_as_wanted(), self.describe()
        plan = self.advance()
        assert not plan.actions, plan.actions
        assert not plan.notices, plan.notices

    def heal(self) -> None:
        world = self.world
        world.slurm_up, world.doubts, world.fault = True, (), False
        world.broken.clear()
        world.jobs.clear()
        world.cordoned.clear()
        for record in world.records.values():
            if record.foreign or record.reason.startswith("Not responding"):
                record.drain, record.base, record.reason, record.foreign = False, "IDLE", "", ""
            record.silent = False
        for pod in self.pods():
            if pod.users_cordon:
                pod.annotations.pop(keys.ANNOTATION_POD_CORDON, None)
                pod.users_cordon = False
                world.touch(pod)

    def advance(self) -> Plan:
        """Everything works: caches catch up, kubelets and slurmds do their part, time goes on."""
        world = self.world
        for pod in self.pods():
            self.step(pod)
        world.clock += 20
        self.operator.see_all()
        self.operator.poll()
        return self.operator.run_pass(all_well())

    def step(self, pod: Pod) -> None:
        """What kubelet, scheduler and slurmd do next for one pod."""
        world = self.world
        if pod.terminating:
            world.stop_daemon(pod)
            del world.pods[pod.name]
            return
        free = [host for host in world.hosts if host not in {other.node for other in self.pods()}]
        if not pod.node and free:
            pod.node = free[0]
            world.touch(pod)
        elif pod.node and pod.phase == "Pending":
            pod.phase, pod.ran, pod.waiting = "Running", True, None
            world.touch(pod)
        elif pod.running and not pod.ready and pod.revision not in world.broken:
            pod.ready, pod.ready_since = True, world.clock
            world.touch(pod)
        if pod.running and world.slurm_up:
            world.records.setdefault(pod.name, Record()).silent = False

    def is_as_wanted(self) -> bool:
        world, pods = self.world, self.pods()
        names = {f"gpu-{ordinal}" for ordinal in range(world.replicas)}
        return (
            len(pods) == world.replicas
            and all(pod.healthy and pod.revision == world.revision for pod in pods)
            and all(keys.ANNOTATION_POD_CORDON not in pod.annotations for pod in pods)
            and all(self.in_service(pod) for pod in pods)
            and (names == set(world.pods) or bool(names))
        )

    def in_service(self, pod: Pod) -> bool:
        record = self.world.records.get(pod.name)
        return record is not None and record.base == "IDLE" and not record.drain

    def describe(self) -> str:
        snapshot = self.operator.snapshot(self.operator.view, fresh=True)
        lines = [
            f"{w.name} {w.pod.status.phase} ready={w.pod.ready} {w.record} cause={own_cause(w)}"
            for w in snapshot.workers
        ]
        plan = self.operator.decide()
        return "\n".join([f"replicas {self.world.replicas} of {self.world.revision}", *lines, repr(plan)])


def all_well() -> Iterator[str]:
    """No request fails."""
    return repeat("ok")


TestNodeSet = NodeSetMachine.TestCase
TestNodeSet.settings = settings(
    max_examples=int(__import__("os").environ.get("N", "60")),
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
