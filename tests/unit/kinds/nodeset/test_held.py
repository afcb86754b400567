"""What others hold survives the pod that shows it (invariants I3 and I12; docs/adr/0037)."""

from typing import Any

import msgspec
import pytest

from coil.api import keys
from coil.api.nodeset import NodeSet
from coil.kinds.nodeset.actions import DeletePod, Drain, Remember
from coil.kinds.nodeset.cordon import plan_drains
from coil.kinds.nodeset.drain import POD_TERMINATING, Cause
from coil.kinds.nodeset.held import plan_memory, plan_restores, read
from coil.kinds.nodeset.plan import make_plan
from coil.kinds.nodeset.replicas import plan_replicas
from coil.kinds.nodeset.revive import plan_revivals
from coil.kinds.nodeset.snapshot import Held, Snapshot
from coil.slurm.wire import Number
from tests.support.workers import NOW, OLD_REVISION, nodeset, pod, record, snapshot

BAD_DIMM = record("gpu-0", "IDLE+DRAIN", "bad DIMM", reason_user="root")
USERS = {keys.ANNOTATION_POD_CORDON: "true"}
LEFT = record("gpu-0", "DOWN+DRAIN", POD_TERMINATING, reason_changed_at=Number(set=True, number=1))
"""What the good-bye of a pod of the reference leaves, long ago."""


def deletion(cause: Cause | None = Cause.UPDATE, uid: str = "uid-gpu-0") -> DeletePod:
    return DeletePod(name="gpu-0", uid=uid, why="", cause=cause)


def remembered(seen: Snapshot, *deletions: DeletePod) -> Held | None:
    """What is written for these deletions; None when nothing is."""
    (action,) = plan_memory(seen, deletions) or (None,)
    if action is None:
        return None
    return read({} if action.annotation is None else {keys.ANNOTATION_HELD: action.annotation})


def with_held(held: Held, of: NodeSet | None = None) -> dict[str, Any]:
    return {"held": held, "of": of or nodeset(replicas=1)}


def test_the_reason_of_a_drain_is_written_before_its_pod_is_deleted() -> None:
    seen = snapshot([pod(0)], [BAD_DIMM])
    assert remembered(seen, deletion()) == Held(drains={"gpu-0": "bad DIMM"})
    (action,) = plan_memory(seen, [deletion()])
    assert action.pods == ("uid-gpu-0",)


def test_a_pod_that_somebody_else_deletes_is_remembered_as_long_as_slurm_shows_the_reason() -> None:
    assert remembered(snapshot([pod(0, terminating=True)], [BAD_DIMM])) == Held(drains={"gpu-0": "bad DIMM"})


@pytest.mark.parametrize(
    "node",
    [
        record("gpu-0", "IDLE+DRAIN", "slurm-operator: Pod is pending termination"),
        record("gpu-0", "DOWN", "Not responding"),
        record("gpu-0", "IDLE", "bad DIMM", reason_user="root"),
    ],
)
def test_nothing_is_written_about_what_nobody_holds(node: Any) -> None:
    assert remembered(snapshot([pod(0)], [node]), deletion()) is None


def test_what_is_written_already_is_not_written_again() -> None:
    held = Held(drains={"gpu-0": "bad DIMM"})
    ending = snapshot([pod(0, terminating=True)], [BAD_DIMM], **with_held(held))
    assert plan_memory(ending, []) == []
    gone = snapshot([], [LEFT], **with_held(held))
    assert plan_memory(gone, []) == []


def test_an_overwritten_reason_comes_back_and_its_drain_is_not_undone() -> None:
    """The second line behind the good-bye: whatever it wrote, the successor is not returned to service."""
    plain = snapshot([pod(0)], [LEFT], of=nodeset(replicas=1))
    assert plan_revivals(plain, {})
    seen = snapshot([pod(0)], [LEFT], **with_held(Held(drains={"gpu-0": "bad DIMM"})))
    assert plan_revivals(seen, {}) == []
    assert plan_restores(seen) == [Drain(nodes=("gpu-0",), reason="bad DIMM")]
    assert remembered(seen) is None
    ours = record("gpu-0", "IDLE+DRAIN", "slurm-operator: x")
    drained = snapshot([pod(0)], [ours], **with_held(Held(drains={"gpu-0": "bad DIMM"})))
    assert plan_drains(drained, {}) == []


@pytest.mark.parametrize("condemned", [{}, {"uid-gpu-0": Cause.SCALE_IN}])
def test_a_drain_of_a_node_that_somebody_held_gives_her_reason(condemned: dict[str, Cause]) -> None:
    """The successor, born with the user's cordon, must not be drained in the operator's words (I3)."""
    held = Held(drains={"gpu-0": "bad DIMM"})
    down = record("gpu-0", "DOWN", POD_TERMINATING)
    born = pod(0, phase="Pending", ready=False, annotations=USERS)
    seen = snapshot([born], [down], **with_held(held))
    assert plan_drains(seen, condemned) == [Drain(nodes=("gpu-0",), reason="bad DIMM")]
    (other,) = plan_drains(snapshot([born], [record("gpu-0")], **with_held(held)), condemned)
    assert isinstance(other, Drain)
    assert "bad DIMM" not in other.reason, "she resumed it"


@pytest.mark.parametrize(
    "node", [BAD_DIMM, record("gpu-0"), record("gpu-0", "DOWN", "worse", reason_user="a")]
)
def test_it_is_forgotten_when_slurm_says_something_else_of_a_worker_that_is_up(node: Any) -> None:
    held = Held(drains={"gpu-0": "bad DIMM"})
    assert remembered(snapshot([pod(0)], [node], **with_held(held))) == Held()
    assert plan_restores(snapshot([pod(0)], [node], **with_held(held))) == []
    assert remembered(snapshot([pod(0, ready=False)], [node], **with_held(held))) is None


def test_it_is_forgotten_when_the_node_is_resumed_before_its_pod_has_ended() -> None:
    held = Held(drains={"gpu-0": "bad DIMM"})
    assert remembered(snapshot([pod(0, terminating=True)], [record("gpu-0")], **with_held(held))) == Held()


def test_a_users_cordon_goes_to_the_successor() -> None:
    seen = snapshot([pod(0, annotations=USERS)], [record("gpu-0", "IDLE+DRAIN", "slurm-operator: x")])
    assert remembered(seen, deletion()) == Held(cordons={"gpu-0": "uid-gpu-0"})
    assert remembered(seen, deletion(Cause.SCALE_IN)) is None
    held = Held(cordons={"gpu-0": "uid-gpu-0"})
    (made,) = plan_replicas(snapshot([], **with_held(held))).create
    assert made.cordoned
    successor = pod(0, annotations=USERS, uid="uid-next")
    assert remembered(snapshot([successor], [record("gpu-0")], **with_held(held))) == Held()


def test_a_cordon_that_its_user_takes_off_in_time_is_forgotten() -> None:
    held = Held(cordons={"gpu-0": "uid-gpu-0"})
    still = snapshot([pod(0, annotations=USERS)], [record("gpu-0")], **with_held(held))
    assert remembered(still, deletion()) is None
    assert remembered(snapshot([pod(0)], [record("gpu-0")], **with_held(held))) == Held()


def test_in_daemon_set_mode_the_place_is_the_machine() -> None:
    of = nodeset(scalingMode="DaemonSet")
    view = pod(0, mode="DaemonSet", annotations=USERS)
    seen = snapshot([view], [record("gpu-0")], of=of)
    assert remembered(seen, deletion(Cause.REPLACE)) == Held(cordons={"kn-0": "uid-gpu-0"})


def test_a_roll_plans_it_in_this_order() -> None:
    """Written first, then deleted; one member of the annotation for each."""
    old = pod(0, annotations=USERS, revision=OLD_REVISION)
    drained = record("gpu-0", "IDLE+DRAIN", "bad DIMM", reason_user="root")
    plan = make_plan(snapshot([old], [drained], of=nodeset(replicas=1)), NOW)
    kinds = [type(action) for action in plan.actions if isinstance(action, DeletePod | Remember)]
    assert kinds == [Remember, DeletePod]
    (memory,) = [action for action in plan.actions if isinstance(action, Remember)]
    assert msgspec.json.decode(memory.annotation or "") == {
        "drains": {"gpu-0": "bad DIMM"},
        "cordons": {"gpu-0": "uid-gpu-0"},
    }


def test_what_cannot_be_read_holds_nothing() -> None:
    assert read({keys.ANNOTATION_HELD: "{"}) == read({keys.ANNOTATION_HELD: '{"drains": 1}'}) == Held()
    assert read({}) == Held()
