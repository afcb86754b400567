"""Which slurmctld pod the client Service points at, by a label (docs: high-availability). Pure."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

import msgspec

from coil.api import keys, names
from coil.kube.views import PodView

WAITING_S = 5.0
"""Without any active slurmctld for this long, clients are led to a standby.

A client that is refused tries once a second and gives up after 10 s. One that meets a standby waits for half
of SlurmctldTimeout before it asks again, and does so until that has become the active one. So a restart of
the active slurmctld is left to the first rule, and a takeover, which takes longer, to the second.
"""


class Role(Enum):
    """What a slurmctld says about itself."""

    ACTIVE = "active"
    STANDBY = "standby"
    SILENT = "silent"


class LabelChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Give (`active`) or take the active label of one pod, the incarnation `uid` and no later one."""

    pod: str
    uid: str
    active: bool


def choose(
    name: str, pods: Sequence[PodView], replicas: int, roles: Mapping[str, Role], idle_s: float
) -> str | None:
    """Name of the pod that should carry the label; None leaves the labels as they are.

    Without backups it is pod 0, whatever it says: a Service without endpoints would keep even the REST
    server that is to be asked from starting. With backups it is the one that says it is active. While none
    says so, a pod that has the label keeps it, unless it is silent and a standby has waited long enough.
    When no pod has the label, pod 0 gets it (spec: control-plane 5.6, 21 Q6).

    Args:
        name: of the Controller.
        pods: those with the Controller's selector labels.
        replicas: wanted number of slurmctld.
        roles: what each pod's slurmctld said just now, by pod name.
        idle_s: seconds since one of them was active.
    """
    first = names.controller_pod(name, 0)
    if replicas == 1:
        return first
    here = labelled(pods)
    active = _in_role(pods, roles, Role.ACTIVE)
    if active:
        # Two are active for a moment when one takes over from the other: the one that clients know stays.
        return here if here in active else active[0]
    standby = _in_role(pods, roles, Role.STANDBY)
    if standby and here not in standby and idle_s >= WAITING_S:
        return standby[0]
    return None if here is not None else first


def _in_role(pods: Iterable[PodView], roles: Mapping[str, Role], role: Role) -> list[str]:
    return sorted(pod.metadata.name for pod in pods if roles.get(pod.metadata.name) is role)


def active_pod(name: str, pods: Iterable[PodView]) -> str:
    """Name of the pod that the Service selects, or will select first."""
    return labelled(pods) or names.controller_pod(name, 0)


def is_active(pod: PodView) -> bool:
    """Whether the Service selects the pod."""
    return pod.metadata.labels.get(keys.LABEL_ACTIVE) == "true"


def labelled(pods: Iterable[PodView]) -> str | None:
    """Name of the pod that the Service selects, if any."""
    return next((pod.metadata.name for pod in pods if is_active(pod)), None)


def label_changes(pods: Sequence[PodView], chosen: str | None) -> tuple[LabelChange, ...]:
    """The fewest patches after which only the chosen pod has the label; the giving one comes first."""
    if chosen is None or all(pod.metadata.name != chosen for pod in pods):
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
