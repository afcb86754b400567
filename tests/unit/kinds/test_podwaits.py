"""Why a pod is not ready."""

from typing import Any

import msgspec
import pytest

from coil.kinds.podwaits import why_not_ready
from coil.kube.views import PodView


def pod(*reasons: str, scheduled: dict[str, Any] | None = None) -> PodView:
    waiting = [{"name": f"c{i}", "state": {"waiting": {"reason": r}}} for i, r in enumerate(reasons)]
    conditions = [] if scheduled is None else [{"type": "PodScheduled", **scheduled}]
    status = {"containerStatuses": waiting, "conditions": conditions}
    return msgspec.convert({"metadata": {"name": "p"}, "status": status}, PodView)


@pytest.mark.parametrize(
    ("found", "reason", "text"),
    [
        (pod(), "NotReady", ""),
        (pod("PodInitializing"), "NotReady", ""),
        (pod("PodInitializing", "ErrImagePull"), "ErrImagePull", ": container c1 waits: ErrImagePull"),
        (pod("ContainerCreating"), "NotReady", ": container c0 waits: ContainerCreating"),
        (pod(scheduled={"status": "False", "reason": "Unschedulable"}), "Unschedulable", ": Unschedulable"),
        (pod(scheduled={"status": "True"}), "NotReady", ""),
    ],
)
def test_the_container_that_waits_or_the_scheduler(found: PodView, reason: str, text: str) -> None:
    assert why_not_ready(found) == (reason, text)
