"""Which slurmctld pods are made anew because slurmdbd is there at last."""

from typing import Any

import msgspec
import pytest

from coil.api.accounting import Accounting
from coil.kinds.controller.report import obstacles
from coil.kinds.controller.restart import outdated_pauses
from coil.kube.views import PodView
from tests.support.resources import accounting

PAUSES = {"waiting": {"reason": "CrashLoopBackOff"}}
CREATED, LATER = "2026-11-30T10:00:00Z", "2026-11-30T10:05:00Z"


def slurmdbd(status: str, since: str = LATER) -> Accounting:
    told = {"type": "Available", "status": status, "reason": "X", "message": "", "lastTransitionTime": since}
    return msgspec.structs.replace(
        accounting(), status=msgspec.convert({"conditions": [told]}, type(accounting().status))
    )


def pod(state: dict[str, Any] = PAUSES, **meta: str) -> PodView:
    metadata = {"name": "alba-controller-0", "namespace": "ns", "creationTimestamp": CREATED, **meta}
    status = {"containerStatuses": [{"name": "slurmctld", "state": state}]}
    return msgspec.convert({"metadata": metadata, "status": status}, PodView)


@pytest.mark.parametrize(
    ("dbd", "found", "anew"),
    [
        (slurmdbd("True"), pod(), True),
        (slurmdbd("True", CREATED), pod(), False),
        (slurmdbd("True", CREATED), pod(creationTimestamp=LATER), False),
        (slurmdbd("False"), pod(), False),
        (slurmdbd("Unknown"), pod(), False),
        (accounting(), pod(), False),
        (None, pod(), False),
        (slurmdbd("True"), pod({"running": {}}), False),
        (slurmdbd("True"), pod({"waiting": {"reason": "ImagePullBackOff"}}), False),
        (slurmdbd("True"), pod(deletionTimestamp=LATER), False),
    ],
)
def test_only_pauses_from_before_slurmdbd_was_available_are_ended(
    dbd: Accounting | None, found: PodView, anew: bool
) -> None:
    assert outdated_pauses(dbd, [found]) == ([found] if anew else [])


def test_what_keeps_slurmctld_from_starting_is_told() -> None:
    assert obstacles(None, "") == obstacles(slurmdbd("True"), "") == obstacles(accounting(), "") == ""
    assert obstacles(slurmdbd("True"), "CLUSTER ID MISMATCH.") == "; slurmctld says: CLUSTER ID MISMATCH."
    assert obstacles(slurmdbd("False"), "slurmdbd must be up at slurmctld start time") == (
        "; Accounting acct is not available: a new slurmctld waits for it"
    )
