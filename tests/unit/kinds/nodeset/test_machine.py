"""Random clusters, failing requests, stale caches, restarts at any point (invariants I1-I4, I6-I8, I12).

Each step is a round: some things happen, the operator's caches catch up more or less, and it makes a pass,
whose requests may fail or be its last. The model judges every write when it is made
(`tests.support.nodeset_model`). When a run ends, all trouble ends too, and the NodeSet must become what it
should be and then stay silent. COIL_EXAMPLES=1000 searches longer, and for new ones.
"""

import os
from collections.abc import Iterator
from itertools import chain, repeat

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from coil.kinds.nodeset import cordon
from coil.kinds.nodeset.drain import own_cause
from coil.kinds.nodeset.plan import Plan
from tests.support.nodeset_model import Operator
from tests.support.nodeset_moves import MOVES, heal, is_as_wanted, step_all
from tests.support.nodeset_world import World

NAMES = tuple(name for name, weight in MOVES.items() for _ in range(weight.weight))
WHICH = st.integers(min_value=0, max_value=30)
HAPPENINGS = st.lists(st.tuples(st.sampled_from(NAMES), WHICH), max_size=4)
FAULTS = st.lists(st.sampled_from(["ok", "ok", "ok", "job", "job", "fail", "crash"]), max_size=8)
"""What becomes of each request of a pass; with `job` a job starts somewhere just before it."""
SIGHT = st.sampled_from(["all", "all", "all", "some", "none"])
ROUNDS = 80


class NodeSetMachine(RuleBasedStateMachine):
    """Rounds of happenings and passes."""

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
        self.world = World(replicas, limit, "rev-0")
        self.operator = Operator(self.world)
        for _ in range(6):
            self.advance()
        assert is_as_wanted(self.world), self.describe()
        for index, name in enumerate(sorted(self.world.pods)):
            if busy >> index & 1:
                self.world.jobs[self.world.number()] = name

    @rule(happenings=HAPPENINGS, sight=SIGHT, poll=st.booleans(), faults=FAULTS)
    def round(self, happenings: list[tuple[str, int]], sight: str, faults: list[str], *, poll: bool) -> None:
        for name, which in happenings:
            pods_before = self.pod_versions()
            MOVES[name].happen(self.world, which)
            if self.pod_versions() != pods_before:
                self.operator.in_step = False
        self.look(sight)
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
        self.operator.see_all()
        self.operator.poll()
        return self.operator.run_pass(all_well())

    def describe(self) -> str:
        snapshot = self.operator.snapshot(self.operator.view, fresh=True)
        lines = [
            f"{w.name} {w.pod.status.phase} ready={w.pod.ready} {w.record} cause={own_cause(w)}"
            for w in snapshot.workers
        ]
        return "\n".join(
            [f"replicas {self.world.replicas} of {self.world.revision}", *lines, repr(self.operator.decide())]
        )


def all_well() -> Iterator[str]:
    """No request fails."""
    return repeat("ok")


TestNodeSet = NodeSetMachine.TestCase
TestNodeSet.settings = settings(
    max_examples=int(os.environ.get("COIL_EXAMPLES", "40")), stateful_step_count=30
)
