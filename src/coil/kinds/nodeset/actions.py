"""What a plan can ask for. Every action says why."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from coil.kinds.nodeset.drain import Cause
from coil.kube.views import ConditionView
from coil.support.objects import OwnerReference


class CreatePod(msgspec.Struct, frozen=True, kw_only=True):
    """Make a worker pod: for an ordinal, perhaps pinned to a node, or for a Kubernetes node."""

    name: str
    """Its name, or what the server-generated one begins with."""
    why: str
    ordinal: int = -1
    node: str = ""
    hostname: str = ""
    """Host name of the worker on `node`, in scaling mode DaemonSet."""
    cordoned: bool = False
    """It is born with the cordon that a user put on its predecessor."""


class DeletePod(msgspec.Struct, frozen=True, kw_only=True):
    """Delete one incarnation of a pod; with `resource_version` only if it is still exactly as seen."""

    name: str
    uid: str
    why: str
    resource_version: str | None = None
    needs_fresh: bool = False
    """Rests on what Slurm said, so that must have been asked in this very pass."""
    cause: Cause | None = None
    """Why the pod was condemned; None when it has ended or Slurm lost it."""


class AdoptPod(msgspec.Struct, frozen=True, kw_only=True):
    """Make the NodeSet the controller of a pod that has none."""

    name: str
    uid: str


class ReleasePod(msgspec.Struct, frozen=True, kw_only=True):
    """Stop controlling a pod whose labels no longer match."""

    name: str
    uid: str


class PatchPod(msgspec.Struct, frozen=True, kw_only=True):
    """Change labels and annotations of a pod; None removes one."""

    name: str
    uid: str
    resource_version: str
    """Only if the pod is still exactly as seen: a cordon that a user sets meanwhile must not become ours."""
    labels: Mapping[str, str | None] = {}
    annotations: Mapping[str, str | None] = {}
    marks: str = ""
    """The Slurm node that may be drained when this is done: the pod then says for which cause."""


class PatchConditions(msgspec.Struct, frozen=True, kw_only=True):
    """Set and remove conditions of a pod, leaving those of others alone."""

    name: str
    uid: str
    resource_version: str
    """Version the change was planned on: while the cache shows it, it does not show the change."""
    wanted: tuple[ConditionView, ...] = ()
    removed: tuple[str, ...] = ()


class OwnClaim(msgspec.Struct, frozen=True, kw_only=True):
    """Set the owners of a volume claim, unless somebody changed it since."""

    name: str
    uid: str
    resource_version: str
    owners: tuple[OwnerReference, ...]


class Remember(msgspec.Struct, frozen=True, kw_only=True):
    """Write into the NodeSet what its deleted pods can say no more; None removes the annotation."""

    annotation: str | None
    pods: tuple[str, ...]
    """Uids of pods that are deleted only when this is written."""


class Drain(msgspec.Struct, frozen=True, kw_only=True):
    """Let no more jobs start on these Slurm nodes."""

    nodes: tuple[str, ...]
    reason: str


class Undrain(msgspec.Struct, frozen=True, kw_only=True):
    """Take back drains of our own."""

    nodes: tuple[str, ...]


class Resume(msgspec.Struct, frozen=True, kw_only=True):
    """Clear DOWN and DRAIN that belong to an earlier incarnation of the worker."""

    nodes: tuple[str, ...]
    why: str


class SetComment(msgspec.Struct, frozen=True, kw_only=True):
    """Write into Slurm which pod a node is."""

    node: str
    comment: str


class SetTopology(msgspec.Struct, frozen=True, kw_only=True):
    """Place Slurm nodes in the network topology."""

    nodes: tuple[str, ...]
    topology: str


class SetFeatures(msgspec.Struct, frozen=True, kw_only=True):
    """Replace the features of Slurm nodes, available and active."""

    nodes: tuple[str, ...]
    features: tuple[str, ...]
    active: tuple[str, ...]


class Prune(msgspec.Struct, frozen=True, kw_only=True):
    """Remove records of workers that are gone, unless a job that Slurm remembers ran there."""

    nodes: tuple[str, ...]


SlurmAction = Drain | Undrain | Resume | SetComment | SetTopology | SetFeatures | Prune
PodAction = CreatePod | DeletePod | AdoptPod | ReleasePod | PatchPod | PatchConditions
Action = PodAction | OwnClaim | Remember | SlurmAction


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """An event about the NodeSet that tells of a decision (spec: nodeset 26)."""

    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str
    pod: str = ""
    """Name of the related pod."""
