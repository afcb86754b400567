"""Random clusters, failing requests, stale caches, restarts at any point (invariants I1-I4, I6-I8, I12).

Each step is a round: some things happen, the operator's caches catch up more or less, and it makes a pass,
whose requests may fail or be its last. The model judges every write when it is made
(`tests.support.nodeset_model`). When a run ends, all trouble ends too, and the NodeSet must become what it
should be and then stay silent. COIL_EXAMPLES=1000 searches longer, and for new ones.
"""

import os
from collections.abc import Iterator, Mapping
from itertools import chain, repeat

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from coil.kinds.nodeset import cordon
from coil.kinds.nodeset.drain import own_cause
from coil.kinds.nodeset.plan import Plan
from coil.kube.expectations import EXPIRY
from tests.support.nodeset_model import Operator
from tests.support.nodeset_moves import MACHINES, MOVES, RIVALS, Move, heal, is_as_wanted, step_all
from tests.support.nodeset_world import DAEMONS, HOST_NETWORK, ORDINALS, World

WHICH = st.integers(min_value=0, max_value=30)
FAULTS = st.lists(st.sampled_from(["ok", "ok", "ok", "job", "job", "fail", "crash"]), max_size=8)
"""What becomes of each request of a pass; with `job` a job starts somewhere just before it."""
SIGHT = st.sampled_from(["all", "all", "all", "some", "none"])
ROUNDS = 80


def happenings(moves: Mapping[str, Move]) -> st.SearchStrategy[list[tuple[str, int]]]:
    """What happens between two passes."""
    names = [name for name, move in moves.items() for _ in range(move.weight)]
    return st.lists(st.tuples(st.sampled_from(names), WHICH), max_size=4)


class NodeSetMachine(RuleBasedStateMachine):
    """Rounds of passes; what happens between them is given by those who inherit."""

    kind = ORDINALS
    moves: Mapping[str, Move] = MOVES

    @initialize(
        replicas=st.integers(1, 5),
        limit=st.integers(1, 3),
        busy=st.integers(0, 31),
        many=st.sampled_from([cordon.MANY, 0, 1]),
    )
    def begin(self, replicas: int, limit: int, busy: int, many: int) -> None:
        """A cluster that has settled, some of its workers busy; of few workers some may count as many."""
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(cordon, "MANY", many)
        self.world = World(replicas, limit, "rev-0", self.kind)
        self.operator = Operator(self.world)
        self.seen_at = self.world.clock
        for _ in range(6):
            self.advance()
        assert is_as_wanted(self.world), self.describe()
        for index, name in enumerate(sorted(pod.slurm for pod in self.world.pods.values())):
            if busy >> index & 1:
                self.world.jobs[self.world.number()] = name

    def round(self, happened: list[tuple[str, int]], sight: str, faults: list[str], *, poll: bool) -> None:
        """Things happen, and the operator makes a pass."""
        for name, which in happened:
            pods_before = self.pod_versions()
            self.moves[name].happen(self.world, which)
            if self.pod_versions() != pods_before:
                self.operator.in_step = False
        # A watch is late by less than the time for which a process waits to see what it did.
        self.look("all" if self.world.clock - self.seen_at >= EXPIRY else sight)
        if poll:
            self.operator.poll()
        self.operator.run_pass(chain(faults, repeat("ok")))

    @rule()
    def restart(self) -> None:
        self.operator.restart()

    def look(self, sight: str) -> None:
        """The watch delivers all, some or none of what happened to pods."""
        if sight == "all":
            self.operator.see_all()
            self.seen_at = self.world.clock
        elif sight == "some":
            for name in sorted({*self.operator.cache, *self.world.pods})[::2]:
                self.operator.see_pod(name)

    def pod_versions(self) -> dict[str, int]:
        return {pod.uid: pod.version for pod in self.world.pods.values()}

    def teardown(self) -> None:
        """All trouble ends: the NodeSet becomes as wanted, and then nothing is written and told any more."""
        if not hasattr(self, "world"):
            return
        try:
            self.come_to_rest()
        finally:
            self.patch.undo()

    def come_to_rest(self) -> None:
        heal(self.world)
        for _ in range(ROUNDS):
            # Successors of pods that a user cordoned are born with the cordon; she takes it off.
            heal(self.world)
            if not self.advance().actions and is_as_wanted(self.world) and self.operator.settled():
                break
        assert is_as_wanted(self.world), self.describe()
        plan = self.advance()
        assert not plan.actions, plan.actions
        assert not plan.notices, plan.notices

    def advance(self) -> Plan:
        """Everything works, and time goes on."""
        step_all(self.world)
        self.world.clock += 20
        self.look("all")
        self.operator.poll()
        return self.operator.run_pass(all_well())

    def describe(self) -> str:
        snapshot = self.operator.snapshot(self.operator.view, fresh=True)
        lines = [
            f"{w.name} {w.pod.status.phase} ready={w.pod.ready} {w.record} cause={own_cause(w)}"
            for w in snapshot.workers
        ]
        return "\n".join(
            [
                f"{self.world.wanted} of {self.world.revision} on {self.world.hosts}",
                *lines,
                repr(self.operator.decide()),
            ]
        )


def all_well() -> Iterator[str]:
    """No request fails."""
    return repeat("ok")


class OrdinalMachine(NodeSetMachine):
    """Workers with ordinals, named after their pods."""

    @rule(happened=happenings(MOVES), sight=SIGHT, poll=st.booleans(), faults=FAULTS)
    def act(self, happened: list[tuple[str, int]], sight: str, faults: list[str], *, poll: bool) -> None:
        self.round(happened, sight, faults, poll=poll)


class HostNetworkMachine(NodeSetMachine):
    """Workers with ordinals on the host network; pods of another NodeSet come to have their names."""

    kind = HOST_NETWORK
    moves = MOVES | RIVALS

    @rule(happened=happenings(moves), sight=SIGHT, poll=st.booleans(), faults=FAULTS)
    def act(self, happened: list[tuple[str, int]], sight: str, faults: list[str], *, poll: bool) -> None:
        self.round(happened, sight, faults, poll=poll)


class DaemonMachine(NodeSetMachine):
    """A worker for each machine; machines come, go, are relabelled, tainted, cordoned and renamed."""

    kind = DAEMONS
    moves = MOVES | MACHINES

    @rule(happened=happenings(moves), sight=SIGHT, poll=st.booleans(), faults=FAULTS)
    def act(self, happened: list[tuple[str, int]], sight: str, faults: list[str], *, poll: bool) -> None:
        self.round(happened, sight, faults, poll=poll)


SETTINGS = settings(max_examples=int(os.environ.get("COIL_EXAMPLES", "40")), stateful_step_count=30)
TestOrdinals, TestHostNetwork, TestDaemons = (
    machine.TestCase for machine in (OrdinalMachine, HostNetworkMachine, DaemonMachine)
)
TestOrdinals.settings = TestHostNetwork.settings = TestDaemons.settings = SETTINGS
