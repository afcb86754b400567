"""Claims about nodes that go on with an earlier configuration."""

import pytest

from coil.api.meta import Condition
from coil.kinds.controller.differing import GRACE_S, Differing, few, refused, unfit
from coil.kinds.controller.live import Outcome
from coil.slurm.wire import Number, SlurmNode
from coil.support.objects import ObjectKey

ALBA = ObjectKey("ns", "alba")
OLD, NEW = 50, 101


def node(name: str, started: int, *state: str, reason: str = "") -> SlurmNode:
    begun = Number(set=True, number=started)
    return SlurmNode(name=name, state=frozenset(state or ("IDLE",)), started_at=begun, reason=reason)


def outcome(*nodes: SlurmNode, generation: str = "g") -> Outcome:
    return Outcome(generation, live=True, since=100, nodes={each.name: each for each in nodes})


def told(message: str) -> Condition:
    return Condition(type="ConfigurationLive", status="False", reason="NodesDiffer", message=message)


def test_nodes_differ_when_they_have_been_late_for_the_grace_time() -> None:
    differing, late = Differing(), outcome(node("b", OLD), node("a", OLD), node("c", NEW))
    looks = [differing.nodes(ALBA, late, None, now) for now in (0.0, GRACE_S - 1, GRACE_S)]
    assert looks == [(), (), ("a", "b")]
    assert differing.nodes(ALBA, outcome(node("a", NEW), node("b", OLD)), None, GRACE_S) == ("b",)


@pytest.mark.parametrize(
    "other",
    [
        outcome(node("a", OLD, "DOWN")),
        outcome(node("a", OLD, "IDLE", "NOT_RESPONDING")),
        outcome(node("a", 0)),
        outcome(node("a", NEW)),
        Outcome("g", live=False, message="m"),
        Outcome("g", live=True),
        None,
    ],
    ids=["down", "silent", "never-came", "taken", "not-live", "untold", "unknown"],
)
def test_who_is_absent_or_new_is_not_late(other: Outcome | None) -> None:
    differing = Differing()
    assert [differing.nodes(ALBA, other, None, now) for now in (0.0, 2 * GRACE_S)] == [(), ()]


def test_a_node_that_comes_back_has_its_own_grace_time() -> None:
    differing = Differing()
    for now, state in ((0.0, "DOWN"), (GRACE_S, "IDLE")):
        assert differing.nodes(ALBA, outcome(node("a", OLD, state)), None, now) == ()
    assert differing.nodes(ALBA, outcome(node("a", NEW)), None, 2 * GRACE_S) == ()
    assert differing.nodes(ALBA, outcome(node("a", OLD)), None, 2 * GRACE_S) == ()


def test_another_configuration_begins_anew() -> None:
    differing = Differing()
    for now, generation in ((0.0, "g"), (GRACE_S, "h")):
        assert differing.nodes(ALBA, outcome(node("a", OLD), generation=generation), None, now) == ()


def test_a_restarted_operator_does_not_take_back_what_is_so() -> None:
    late = outcome(node("a", OLD))
    assert Differing().nodes(ALBA, late, told("configuration g is live"), 0.0) == ("a",)
    assert Differing().nodes(ALBA, late, told("configuration f is live"), 0.0) == ()
    differing = Differing()
    differing.nodes(ALBA, outcome(), told("configuration g is live"), 0.0)
    assert differing.nodes(ALBA, late, told("configuration g is live"), 1.0) == ()


def test_a_few_names_are_told() -> None:
    assert few(["a", "b", "c"]) == "a, b, c"
    assert few(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


def test_the_words_of_a_slurmd_that_went_on_are_found_in_its_log() -> None:
    log = """slurmd: error: System GPU detection failed
slurmd: error: _parse_next_key: Parsing error at unrecognized key: Nmae
slurmd: fatal: error opening/reading /var/spool/slurmd/conf-cache/gres.conf
slurmd: Resuming operation, reconfigure failed.
slurmd: error: of something else, later
"""
    assert refused(log) == (
        "_parse_next_key: Parsing error at unrecognized key: Nmae; "
        "error opening/reading /var/spool/slurmd/conf-cache/gres.conf"
    )
    assert refused(f"{log}[2026-11-30T23:06:26] slurmd started on Mon, 30 Nov 2026\n") == ""
    assert refused("slurmd: error: of something else\n") == refused("") == ""


def test_nodes_with_less_than_is_configured_are_told_with_the_reason_of_one() -> None:
    nodes = {name: node(name, NEW, "IDLE", "INVALID_REG", reason=f"gpu of {name}") for name in "ba"}
    assert unfit(nodes) == "; Slurm takes no jobs to a, b: gpu of a"
    assert unfit({"a": node("a", NEW)}) == ""
