"""Records left by an earlier incarnation (spec: nodeset 24.1; field cases REG-14, DRN-15)."""

import pytest

from coil.api import keys
from coil.kinds.nodeset.drain import POD_TERMINATING, Cause
from coil.kinds.nodeset.identity import PodInfo, encode_comment
from coil.kinds.nodeset.records import plan_comments
from coil.kinds.nodeset.revive import GOOD_BYE, plan_revivals
from coil.kinds.nodeset.times import seconds, text
from coil.kube.views import PodView
from coil.slurm.wire import Number, SlurmNode
from tests.support.workers import LONG_AGO, NOW, host, pod, record, snapshot

READY = int(seconds(LONG_AGO))
ELSEWHERE = encode_comment(PodInfo(namespace="slurm", pod_name="gpu-0", node="kn-9"))
OURS = "slurm-operator: Pod (slurm/gpu-0) is pending termination for scale-in"


def revived(node: SlurmNode, view: PodView | None = None, *, cordoned: bool = False) -> bool:
    seen = snapshot([view or pod(0)], [node], hosts=[host("kn-0", cordoned=cordoned)])
    return bool(plan_revivals(seen, {}))


def down(reason: str, *, since: int, state: str = "DOWN") -> SlurmNode:
    return record("gpu-0", state, reason, reason_changed_at=Number(set=True, number=since))


def test_a_good_bye_from_before_the_pod_turned_ready_is_over() -> None:
    assert revived(down(POD_TERMINATING, since=READY - 5))
    assert revived(down(POD_TERMINATING, since=READY - 5, state="DOWN+DRAIN"))


@pytest.mark.parametrize("later", [0, 1, 30])
def test_the_good_bye_of_this_very_pod_is_respected(later: int) -> None:
    since = int(NOW) - 60
    assert not revived(down(POD_TERMINATING, since=since + later), pod(0, ready_since=text(since)))


def test_a_pod_that_is_well_long_after_a_good_bye_did_not_say_it() -> None:
    just, long_ago = int(NOW - GOOD_BYE), int(NOW - GOOD_BYE - 1)
    assert not revived(down(POD_TERMINATING, since=just))
    assert revived(down(POD_TERMINATING, since=long_ago))


def test_a_good_bye_without_time_is_respected() -> None:
    assert not revived(record("gpu-0", "DOWN", POD_TERMINATING))


def test_a_node_that_went_down_under_our_drain_comes_back() -> None:
    assert revived(record("gpu-0", "DOWN+DRAIN", OURS))
    assert not revived(record("gpu-0", "DOWN+DRAIN+NOT_RESPONDING", OURS))


def test_a_node_that_went_silent_with_an_earlier_pod_comes_back() -> None:
    made = seconds(LONG_AGO)
    assert revived(down("Not responding", since=int(made) - 1))
    assert not revived(down("Not responding", since=int(made)))
    assert not revived(down("Not responding", since=int(made) - 1, state="DOWN+NOT_RESPONDING"))


@pytest.mark.parametrize("reason", ["bad fan", "Not responding", ""])
def test_what_others_took_down_stays_down(reason: str) -> None:
    assert not revived(record("gpu-0", "DOWN+DRAIN", reason))


def test_a_worker_that_is_not_ready_or_shall_be_drained_stays_down() -> None:
    node = down(POD_TERMINATING, since=READY - 5)
    assert not revived(node, pod(0, ready=False))
    assert not revived(node, pod(0, terminating=True))
    assert not revived(node, pod(0, annotations={keys.ANNOTATION_POD_CORDON: "true"}))
    assert not revived(node, cordoned=True)
    assert plan_revivals(snapshot([pod(0)], [node]), {"uid-gpu-0": Cause.SCALE_IN}) == []


@pytest.mark.parametrize("reason", [OURS, "Not responding", "Prolog error", "Kill task failed"])
@pytest.mark.parametrize("state", ["DOWN", "IDLE+DRAIN", "DOWN+DRAIN"])
def test_another_machine_clears_what_was_the_old_ones_fault(reason: str, state: str) -> None:
    assert revived(record("gpu-0", state, reason, comment=ELSEWHERE))


@pytest.mark.parametrize(
    "reason", ["bad fan", "xid 79", "", "Prolog error in site script, see RMA 4", f"{OURS} : reboot"]
)
def test_another_machine_does_not_clear_a_humans_drain(reason: str) -> None:
    for words in ("Prolog error", "Not responding"):
        by_person = record("gpu-0", "DOWN+DRAIN", words, comment=ELSEWHERE, reason_user="anna")
        assert not revived(by_person)
    assert not revived(record("gpu-0", "DOWN+DRAIN", reason, comment=ELSEWHERE))


@pytest.mark.parametrize("state", ["IDLE", "MIXED", "MIXED+DRAIN", "DOWN+INVALID_REG"])
def test_nothing_to_clear_or_not_allowed(state: str) -> None:
    assert not revived(record("gpu-0", state, OURS, comment=ELSEWHERE))


def test_the_comment_of_a_moved_worker_changes_only_after_it_came_back() -> None:
    seen = snapshot([pod(0)], [record("gpu-0", "DOWN", "Not responding", comment=ELSEWHERE)])
    names = {name for revival in plan_revivals(seen, {}) for name in revival.nodes}
    assert plan_comments(seen, names, NOW)[0] == []
    seen = snapshot([pod(0)], [record("gpu-0", comment=ELSEWHERE)])
    (change,) = plan_comments(seen, (), NOW)[0]
    assert '"node":"kn-0"' in change.comment


@pytest.mark.parametrize("reason", ["Not responding to IPMI, RMA 12", "Not responding"])
def test_silence_that_a_person_tells_of_is_not_slurms(reason: str) -> None:
    since = Number(set=True, number=READY - 5)
    node = record("gpu-0", "DOWN", reason, reason_changed_at=since, reason_user="anna")
    assert not revived(node)
