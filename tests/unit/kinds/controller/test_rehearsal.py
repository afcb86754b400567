"""Claims about what follows from a trial: only slurmctld's own yes lets a configuration through."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from coil.api import keys
from coil.api.controller import Controller
from coil.kinds.controller.rehearsal import (
    LIMIT_S,
    RETRY_S,
    Accept,
    Again,
    Begin,
    Doubt,
    Refuse,
    Step,
    Wait,
    needed,
    next_step,
    refusal,
)
from coil.kube.views import ManifestView, PodView

START = datetime(2026, 1, 31, tzinfo=UTC)
FILES = {"slurm.conf": "ClusterName=x\nMaxJobCoont=5\n"}
SAID = """\
[2026-11-30T20:15:52.537] error: Configured MailProg is invalid
[2026-11-30T20:15:52.537] error: _parse_next_key: Parsing error at unrecognized key: MaxJobCoont
[2026-11-30T20:15:52.537] error: StateSaveLocation 1 specified more than once, latest value used
[2026-11-30T20:15:52.537] fatal: Unable to process configuration file
"""
TOLD = (
    "_parse_next_key: Parsing error at unrecognized key: MaxJobCoont; Unable to process configuration file"
    " (slurm.conf line 2: MaxJobCoont=5)"
)


def pod(trial: str = "g", phase: str = "Running", code: int | None = None, **members: Any) -> PodView:
    state: dict[str, Any] = {} if code is None else {"terminated": {"exitCode": code, "message": SAID}}
    statuses = [{"name": "slurmctld", "state": state}] if phase != "Pending" else []
    metadata = {
        "name": f"alba-rehearsal-{trial}",
        "creationTimestamp": "2026-01-31T00:00:00Z",
        "annotations": {keys.ANNOTATION_REHEARSED: trial},
    }
    status = {"phase": phase, "containerStatuses": statuses, **members}
    return msgspec.convert({"metadata": metadata, "status": status}, PodView)


def candidate(trial: str, refused: str = "") -> ManifestView:
    told = {keys.ANNOTATION_REHEARSED: trial, **({keys.ANNOTATION_REFUSED: refused} if refused else {})}
    return msgspec.convert({"metadata": {"name": "c", "annotations": told}}, ManifestView)


def step(*pods: PodView, noted: ManifestView | None = None, after: float = 1.0) -> Step:
    return next_step("g", FILES, noted, pods, START + timedelta(seconds=after))


def test_a_new_configuration_is_tried_whatever_was_tried_before() -> None:
    assert step() == Begin()
    assert step(pod("other", code=0), noted=candidate("other", "no")) == Begin()
    assert step(noted=candidate("g")) == Begin()


def test_only_a_slurmctld_that_came_up_lets_it_through() -> None:
    assert step(pod(phase="Succeeded", code=0)) == Accept()
    for code in (1, 2, 3, 4, 126, 137):
        assert step(pod(phase="Failed", code=code)) != Accept()
    assert step(pod(phase="Succeeded")) != Accept()


def test_a_refusal_gives_the_daemons_words_and_the_line_and_is_remembered() -> None:
    assert step(pod(phase="Failed", code=1)) == Refuse(TOLD, noted=False)
    # The operator has restarted, and the pod is gone: nothing is tried again.
    assert step(noted=candidate("g", TOLD)) == Refuse(TOLD, noted=True)


def test_a_silent_refusal_is_one_too() -> None:
    assert refusal("", {}) == "slurmctld ended without a word"
    assert refusal("Segmentation fault", {}) == "Segmentation fault"


def test_a_pod_that_runs_is_waited_for_but_not_for_ever() -> None:
    for phase in ("Pending", "Running"):
        assert step(pod(phase=phase)) == Wait(LIMIT_S - 1)
        assert isinstance(step(pod(phase=phase), after=LIMIT_S), Doubt)
        assert step(pod(phase=phase), after=RETRY_S) == Again(pod(phase=phase))


@pytest.mark.parametrize(
    ("given", "reason", "words"),
    [
        (pod(phase="Failed", code=4), "RehearsalUndecided", "the last error: Unable to process"),
        (pod(phase="Failed", code=137), "RehearsalFailed", "exit code 137"),
        (
            pod(phase="Failed", reason="Evicted", message="low on memory", containerStatuses=[]),
            "RehearsalFailed",
            "Evicted low on memory",
        ),
        (
            pod(
                containerStatuses=[
                    {"name": "slurmctld", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
                ]
            ),
            "RehearsalNotRun",
            "ImagePullBackOff",
        ),
        (
            pod(
                phase="Pending",
                conditions=[
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/3 nodes are available",
                    }
                ],
            ),
            "RehearsalNotRun",
            "0/3 nodes are available",
        ),
    ],
)
def test_a_trial_that_tells_nothing_says_why_and_lets_nothing_through(
    given: PodView, reason: str, words: str
) -> None:
    found = step(given, after=LIMIT_S + 1)
    assert isinstance(found, Doubt)
    assert found.reason == reason
    assert words in found.message
    assert found.seconds == RETRY_S - LIMIT_S - 1


def controller(**annotations: str) -> Controller:
    return msgspec.convert({"metadata": {"name": "a", "annotations": annotations}, "spec": {}}, Controller)


def slurmctld(phase: str, *, ready: bool) -> PodView:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return msgspec.convert({"metadata": {}, "status": {"phase": phase, "conditions": conditions}}, PodView)


def test_a_rehearsal_is_for_a_running_slurmctld() -> None:
    running, crashing = slurmctld("Running", ready=True), slurmctld("Running", ready=False)
    assert needed(controller(), [running], "")
    assert needed(controller(), [crashing], "")
    assert needed(controller(), [running, crashing], "fatal")
    assert not needed(controller(), [crashing], "fatal")
    assert not needed(controller(), [slurmctld("Pending", ready=False)], "")
    assert not needed(controller(), [], "")
    assert not needed(controller(**{keys.ANNOTATION_REHEARSAL: "off"}), [running], "")
