"""End the kubelet's growing pauses for a slurmctld that only waited for its database (pure).

At its first start slurmctld waits for slurmdbd and answers no probe meanwhile: the kubelet kills it after a
minute, again and again, with pauses of up to 5 minutes. When slurmdbd is there at last nothing would use it
until the pause is over. A new pod starts without one.
"""

from collections.abc import Iterable

from coil.api import keys
from coil.api.accounting import Accounting
from coil.api.conditions import find
from coil.kinds.status import AVAILABLE
from coil.kube.views import PodView

PAUSING = "CrashLoopBackOff"


def outdated_pauses(accounting: Accounting | None, pods: Iterable[PodView]) -> list[PodView]:
    """Pods that pause since before slurmdbd became available; made anew, they do not qualify again."""
    available = find(accounting.status.conditions, AVAILABLE) if accounting is not None else None
    if available is None or available.status != "True":
        return []
    # Both are RFC 3339 in UTC with whole seconds: they compare as text.
    since = available.last_transition_time or ""
    return [
        pod
        for pod in pods
        if _pauses(pod) and not pod.terminating and pod.metadata.creation_timestamp < since
    ]


def _pauses(pod: PodView) -> bool:
    return any(
        status.name == keys.SLURMCTLD
        and status.state.waiting is not None
        and status.state.waiting.reason == PAUSING
        for status in pod.status.container_statuses
    )
