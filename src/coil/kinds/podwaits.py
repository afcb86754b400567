"""Why a pod is not ready, as far as its status says. Pure."""

from typing import NamedTuple

from coil.kube.views import PodView

NOT_READY = "NotReady"


class Wait(NamedTuple):
    """`reason` is that of a condition; `text` is empty or begins with a colon."""

    reason: str
    text: str


def why_not_ready(pod: PodView) -> Wait:
    """The first container that waits, or the scheduler, by reason only.

    Messages of the kubelet and the scheduler change at each try.
    """
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in ("PodInitializing", ""):
            reason = NOT_READY if waiting.reason == "ContainerCreating" else waiting.reason
            return Wait(reason, f": container {status.name} waits: {waiting.reason}")
    scheduled = pod.status.condition("PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        return Wait(scheduled.reason or "NotScheduled", f": {scheduled.reason}")
    return Wait(NOT_READY, "")
