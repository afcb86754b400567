"""Claims about the conditions of an Accounting."""

from typing import Any

import msgspec
import pytest

from coil.api.defaults import with_defaults
from coil.api.meta import Condition
from coil.kinds.accounting.report import conditions
from coil.kinds.accounting.snapshot import Snapshot
from coil.kinds.status import Problem
from coil.kube.views import PodView
from coil.support.objects import ObjectKey
from tests.support.resources import accounting


def pod(*, ready: bool = False, waiting: str = "", scheduled: str = "True", **meta: Any) -> PodView:
    state: dict[str, Any] = {"waiting": {"reason": waiting, "message": "differs at each try"}}
    status = {
        "conditions": [
            {"type": "Ready", "status": "True" if ready else "False"},
            {"type": "PodScheduled", "status": scheduled, "reason": "Unschedulable"},
        ],
        "containerStatuses": [{"name": "slurmdbd", "state": state if waiting else {}}],
    }
    metadata = {"name": "acct-accounting-0", "namespace": "ns", **meta}
    return msgspec.convert({"metadata": metadata, "status": status}, PodView)


def told(problems: list[Problem] | None = None, **members: Any) -> dict[str, Condition]:
    found = Snapshot(accounting=with_defaults(accounting()), **members)
    return {each.type: each for each in conditions(found, problems or [])}


@pytest.mark.parametrize(
    ("found", "status", "reason", "words"),
    [
        (None, "False", "NoPod", "no slurmdbd pod"),
        (pod(ready=True), "True", "Ready", "acct-accounting"),
        (pod(), "False", "NotReady", "is not ready"),
        (pod(waiting="ImagePullBackOff"), "False", "ImagePullBackOff", "container slurmdbd waits"),
        (pod(waiting="ContainerCreating"), "False", "NotReady", "is not ready"),
        (pod(scheduled="False"), "False", "Unschedulable", "Unschedulable"),
        (pod(ready=True, deletionTimestamp="2026-01-01T00:00:00Z"), "False", "Terminating", "replaced"),
    ],
)
def test_it_is_available_when_its_pod_is_ready(
    found: PodView | None, status: str, reason: str, words: str
) -> None:
    available = told(pod=found)["Available"]
    assert (available.status, available.reason) == (status, reason)
    assert words in available.message
    assert "differs at each try" not in available.message


def test_what_slurmdbd_says_is_repeated() -> None:
    words = "mysql_real_connect failed: 1045 Access denied for user 'slurm'@'10.0.0.1' (using password: YES)"
    assert told(pod=pod(), complaint=words)["Available"].message == (
        f"pod acct-accounting-0 is not ready; slurmdbd says: {words}"
    )


def test_problems_are_told() -> None:
    reconciled = told([Problem("Config", "SecretMissing", "gone")])["Reconciled"]
    assert (reconciled.status, reconciled.reason, reconciled.message) == (
        "False",
        "SecretMissing",
        "Config: gone",
    )


def test_others_on_the_same_database_are_named() -> None:
    assert told()["DatabaseExclusive"].status == "True"
    shared = told(sharing=(ObjectKey("b", "y"), ObjectKey("a", "x")))["DatabaseExclusive"]
    assert (shared.status, shared.reason) == ("False", "Shared")
    assert "a/x, b/y" in shared.message


def test_nobody_here_knows_of_an_external_slurmdbd() -> None:
    external = with_defaults(accounting(external=True, externalConfig={"host": "h", "port": 1}))
    found = {each.type: each.status for each in conditions(Snapshot(accounting=external), [])}
    assert found == {"Reconciled": "True", "Available": "Unknown"}
