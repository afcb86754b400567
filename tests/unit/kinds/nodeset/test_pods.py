"""Bodies of the requests about worker pods, and the events that tell of them."""

import contextlib
from typing import Any, cast

import msgspec
import pytest

from coil.api.controller import Controller
from coil.build.nodeset import PodInputs, template
from coil.kinds.nodeset.actions import CreatePod, PatchConditions
from coil.kinds.nodeset.memory import Memory
from coil.kinds.nodeset.pods import Pods, conditions_patch
from coil.kube import core
from coil.kube.client import Client
from coil.kube.errors import AlreadyExists, ApiError, Forbidden
from coil.kube.views import ConditionView, ManifestView
from tests.support.workers import nodeset, pod

CONTROLLER = {
    "metadata": {"name": "main", "namespace": "slurm"},
    "spec": {"slurmKeyRef": {"name": "keys", "key": "slurm.key"}},
}


def test_an_empty_message_replaces_an_old_one() -> None:
    idle = ConditionView(
        type="SlurmNodeStateIdle", status="True", last_transition_time="2026-01-01T00:00:00Z"
    )
    action = PatchConditions(
        name="a", uid="u", resource_version="1", wanted=(idle,), removed=("SlurmNodeStateDrain",)
    )
    written, removed = conditions_patch(action)["status"]["conditions"]
    assert written["message"] == ""
    assert removed == {"$patch": "delete", "type": "SlurmNodeStateDrain"}


class Server:
    """Makes whatever it is asked to, unless claims are refused."""

    def __init__(self, refusal: ApiError | None) -> None:
        self._refusal = refusal

    async def create(self, resource: Any, *_: Any, **__: Any) -> Any:
        if resource is core.CLAIMS and self._refusal is not None:
            raise self._refusal
        return pod(0)

    async def get(self, *_: Any) -> ManifestView:
        return msgspec.convert({"metadata": {"name": "data-gpu-0"}}, ManifestView)


async def events_of_a_worker_with_a_claim(refusal: ApiError | None) -> list[tuple[str, ...]]:
    """Type, reason and text of what is told while a worker and its volume claim are made."""
    made = nodeset(volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {}}])
    built = template(made, PodInputs(controller=msgspec.convert(CONTROLLER, Controller)), "1")
    told: list[tuple[str, ...]] = []

    def record(_about: Any, kind: str, reason: str, _action: str, note: str, *_: Any) -> None:
        told.append((kind, reason, note))

    hands = Pods(cast("Client", Server(refusal)), record, Memory(), made)
    with contextlib.suppress(ApiError):
        await hands.create(CreatePod(name="gpu-0", why="missing", ordinal=0), built)
    return told


@pytest.mark.asyncio
async def test_a_claim_that_was_made_is_told_as_a_success_and_once() -> None:
    """Field case SCL-15."""
    told = await events_of_a_worker_with_a_claim(None)
    assert told == [
        ("Normal", "SuccessfulCreate", "create Claim: data-gpu-0 Pod gpu-0"),
        ("Normal", "SuccessfulCreate", "Created pod: gpu-0"),
    ]


@pytest.mark.asyncio
async def test_a_refused_claim_is_told_once_with_the_servers_words() -> None:
    """Field case SCL-15."""
    refusal = Forbidden(reason="Forbidden", message="exceeded quota: storage")
    told = await events_of_a_worker_with_a_claim(refusal)
    assert told == [("Warning", "FailedCreate", "Error creating pod gpu-0: exceeded quota: storage")]


@pytest.mark.asyncio
async def test_a_claim_that_was_there_before_is_told_of_neither_way() -> None:
    """Field case SCL-15."""
    told = await events_of_a_worker_with_a_claim(AlreadyExists(reason="AlreadyExists", message="exists"))
    assert [reason for _, reason, _ in told] == ["SuccessfulCreate"]
    assert told[0][2] == "Created pod: gpu-0"
