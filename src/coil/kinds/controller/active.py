"""Which slurmctld pod the client Service points at, by the label it selects (spec: control-plane 5.6)."""

from collections.abc import Iterable, Sequence

import msgspec

from coil.api import keys, names
from coil.kube.views import PodView


class LabelChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Give (`active`) or take the active label of one pod, the incarnation `uid` and no later one."""

    pod: str
    uid: str
    active: bool


def choose(
    name: str, pods: Sequence[PodView], replicas: int, responding: Sequence[bool] | None
) -> str | None:
    """Name of the pod that should carry the label; None leaves the labels as they are.

    Without backups it is pod 0, whatever Slurm says: a Service without endpoints would keep even the REST
    server that is to be asked from starting. With backups Slurm decides: the first that responds. When it
    cannot be asked, or none responds, a pod that has the label keeps it; when none has it, pod 0 gets it.

    Args:
        name: of the Controller.
        pods: those with the Controller's selector labels.
        replicas: wanted number of slurmctld.
        responding: Slurm's answer to a ping, in ordinal order; None when it cannot be asked.
    """
    first = names.controller_pod(name, 0)
    if replicas == 1:
        return first
    if responding and any(responding):
        return names.controller_pod(name, list(responding).index(True))
    return None if any(is_active(pod) for pod in pods) else first


def is_active(pod: PodView) -> bool:
    """Whether the Service selects the pod."""
    return pod.metadata.labels.get(keys.LABEL_ACTIVE) == "true"


def labelled(pods: Iterable[PodView]) -> str | None:
    """Name of the pod that the Service selects, if any."""
    return next((pod.metadata.name for pod in pods if is_active(pod)), None)


def label_changes(pods: Sequence[PodView], chosen: str | None) -> tuple[LabelChange, ...]:
    """The fewest patches after which only the chosen pod has the label; the giving one comes first."""
    if chosen is None:
        return ()
    changes = [
        LabelChange(pod=pod.metadata.name, uid=pod.metadata.uid, active=wanted)
        for pod in pods
        if (wanted := pod.metadata.name == chosen) != is_active(pod) or _has_other_value(pod)
    ]
    return tuple(sorted(changes, key=lambda change: (not change.active, change.pod)))


def _has_other_value(pod: PodView) -> bool:
    """The label is there with a value that is not ours: never `"false"`, absent (spec: control-plane 2.3)."""
    return pod.metadata.labels.get(keys.LABEL_ACTIVE, "true") != "true"
