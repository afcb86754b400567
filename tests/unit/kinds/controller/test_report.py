"""Claims about a Controller's conditions."""

from typing import Any

import msgspec
import pytest

from coil.api.accounting import Accounting
from coil.api.controller import Controller, ControllerSpec
from coil.api.meta import Condition, ObjectMeta
from coil.kinds.controller.live import NO_WAY, Outcome
from coil.kinds.controller.rehearsal import Verdict
from coil.kinds.controller.report import (
    GOES_ON,
    Slurm,
    available,
    configuration_live,
    configuration_rejected,
    needs_attention,
    nodes_differ,
    obstacles,
    slurm_reachable,
)
from coil.kinds.status import Truth
from coil.kube.views import PodView
from coil.slurm.wire import Number, SlurmNode

ALBA = Controller(metadata=ObjectMeta(name="alba", namespace="ns", generation=7))
ACTIVE = "alba-controller-0"


def pod(status: dict[str, Any], **metadata: Any) -> PodView:
    return msgspec.convert({"metadata": {"name": ACTIVE, **metadata}, "status": status}, PodView)


READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def _waiting(name: str, reason: str) -> dict[str, Any]:
    return {"name": name, "state": {"waiting": {"reason": reason, "message": "changes at each try"}}}


@pytest.mark.parametrize(
    ("pods", "status", "message"),
    [
        ([pod(READY)], "True", "slurmctld runs in pod alba-controller-0"),
        ([], "False", "there is no active slurmctld pod"),
        ([pod(READY, deletionTimestamp="now")], "False", "pod alba-controller-0 is being replaced"),
        ([pod({})], "False", "pod alba-controller-0 is not ready"),
        (
            [
                pod(
                    {
                        "initContainerStatuses": [_waiting("logfile", "ImagePullBackOff")],
                        "containerStatuses": [_waiting("slurmctld", "PodInitializing")],
                    }
                )
            ],
            "False",
            "pod alba-controller-0 is not ready: container logfile waits: ImagePullBackOff",
        ),
        (
            [pod({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]})],
            "False",
            "pod alba-controller-0 is not ready: Unschedulable",
        ),
    ],
)
def test_available_says_what_keeps_the_active_pod(pods: list[PodView], status: str, message: str) -> None:
    condition = available(ALBA, pods, ACTIVE)
    assert (condition.status, condition.message) == (status, message)


def test_what_keeps_slurmctld_from_starting_is_told() -> None:
    def slurmdbd(status: str) -> Accounting:
        told = {"type": "Available", "status": status, "reason": "X", "message": ""}
        return msgspec.convert({"metadata": {"name": "acct"}, "status": {"conditions": [told]}}, Accounting)

    assert obstacles(None, "") == obstacles(slurmdbd("True"), "") == obstacles(Accounting(), "") == ""
    assert obstacles(slurmdbd("True"), "CLUSTER ID MISMATCH.") == "; slurmctld says: CLUSTER ID MISMATCH."
    waits = "; Accounting acct is not available: a new slurmctld waits for it"
    assert obstacles(slurmdbd("False"), "slurmdbd must be up at slurmctld start time") == waits
    said = available(ALBA, [pod({})], ACTIVE, waits).message
    assert said == f"pod {ACTIVE} is not ready{waits}"


def test_nobody_here_knows_whether_an_external_slurmctld_runs() -> None:
    external = Controller(metadata=ALBA.metadata, spec=ControllerSpec(external=True))
    assert available(external, [], None).status == "Unknown"


def told(slurm: Slurm | None, live: list[Condition]) -> Condition:
    condition = slurm_reachable(ALBA, slurm, live)
    assert condition is not None
    return condition


def test_what_the_client_meets_is_told() -> None:
    condition = told(Slurm("True", "Answers", "at an address"), [])
    assert (condition.status, condition.reason, condition.message) == ("True", "Answers", "at an address")


def test_an_outage_keeps_its_first_message() -> None:
    first = told(Slurm("False", "Unreachable", "refused"), [])
    again = told(Slurm("False", "Unreachable", "no answer within 30 s"), [first])
    other = told(Slurm("False", "Unauthorized", "401"), [first])
    assert (again.message, other.message) == ("refused", "401")


def test_a_restarted_operator_that_knows_nothing_yet_leaves_what_was_said() -> None:
    before = told(Slurm("True", "Answers", "at an address"), [])
    assert told(None, [before]) == before
    assert slurm_reachable(ALBA, None, []) is None


def test_advice_is_told_and_taken_back() -> None:
    assert needs_attention(ALBA, [], []) is None
    given = needs_attention(ALBA, ["topology.conf has no effect", "b"], [])
    assert given is not None
    assert (given.status, given.message) == ("True", "topology.conf has no effect; b")
    taken_back = needs_attention(ALBA, [], [given])
    assert taken_back is not None
    assert taken_back.status == "False"


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (
            Outcome("g", live=True, since=100, nodes={}),
            ("True", "Live", "configuration g is live on slurmctld and 0 of 0 nodes"),
        ),
        (
            Outcome("g", live=True),
            (
                "True",
                "Applied",
                "configuration g was handed to slurmctld, which does not tell whether it runs with it",
            ),
        ),
        (
            Outcome("g", live=False, message="m", again_s=1.0),
            ("False", "Applying", "configuration g is not live: m"),
        ),
        (
            Outcome("g", live=False, message="Invalid qos (high)", refused=True),
            (
                "False",
                "RefusedBySlurmctld",
                f"configuration g is refused by slurmctld, {GOES_ON}: Invalid qos (high)",
            ),
        ),
        (
            Outcome("g", live=False, message=NO_WAY),
            ("Unknown", "NoRestApi", f"configuration g: {NO_WAY}"),
        ),
    ],
)
def test_which_configuration_is_live(outcome: Outcome, told: tuple[str, str, str]) -> None:
    found = configuration_live(ALBA, outcome)
    assert (found.status, found.reason, found.message) == told


def test_nodes_that_go_on_with_an_earlier_configuration_are_told_with_what_to_do() -> None:
    nodes = {
        name: SlurmNode(name=name, state=frozenset({"IDLE"}), started_at=Number(set=True, number=begun))
        for name, begun in (("a", 50), ("b", 101))
    }
    outcome = Outcome("g", live=True, since=100, nodes=nodes)
    found = configuration_live(ALBA, outcome, ("a",), "no such key: Nmae")
    assert (found.status, found.reason) == ("False", "NodesDiffer")
    assert found.message == (
        "configuration g is live on slurmctld and 1 of 2 nodes; an earlier one stays on a; slurmd of a says: "
        "no such key: Nmae; mend what only slurmd reads (gres.conf, cgroup.conf); it goes through by itself"
    )
    assert found.message.startswith(nodes_differ(outcome, ("a",)))


def _rejected(status: Truth) -> Condition:
    return Condition(type="ConfigurationRejected", status=status, reason="X", message="as before")


def test_a_refusal_is_told_with_what_stays_in_place() -> None:
    refused = Verdict(generation="g2", reason="RefusedBySlurmctld", message="no such key: X")
    told = configuration_rejected(ALBA, refused, [])
    assert told is not None
    assert (told.status, told.reason) == ("True", "RefusedBySlurmctld")
    assert told.message == (
        "configuration g2 is refused by slurmctld, the one before stays in place: no such key: X"
    )


def test_a_trial_that_cannot_be_run_is_neither_yes_nor_no() -> None:
    doubt = Verdict(generation="g2", reason="RehearsalNotRun", message="no node")
    told = configuration_rejected(ALBA, doubt, [_rejected("False")])
    assert told is not None
    assert (told.status, told.reason) == ("Unknown", "RehearsalNotRun")


@pytest.mark.parametrize("before", [[], [_rejected("False")]])
def test_nothing_new_is_said_without_a_trial(before: list[Condition]) -> None:
    open_ = Verdict(generation="g", open=True)
    assert configuration_rejected(ALBA, open_, before) == (before[0] if before else None)


def test_a_refusal_stands_while_another_configuration_is_tried_and_goes_with_its_success() -> None:
    before = [_rejected("True")]
    assert configuration_rejected(ALBA, Verdict(generation="g3"), before) == before[0]
    assert configuration_rejected(ALBA, None, before) == before[0]
    for verdict in (Verdict(generation="g3", open=True, tried=True), Verdict(generation="g1", open=True)):
        told = configuration_rejected(ALBA, verdict, before)
        assert told is not None
        assert told.status == "False"
