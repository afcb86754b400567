"""Which pods belong to the NodeSet (spec: nodeset 10)."""

from collections.abc import Iterable

import msgspec

from coil.api import keys, names
from coil.api.meta import API_VERSION
from coil.api.nodeset import NodeSet
from coil.kinds.nodeset.actions import AdoptPod, ReleasePod
from coil.kube.views import PodView


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that are ours, and references to set right. An adopted pod counts from the next pass on."""

    pods: tuple[PodView, ...]
    adopt: tuple[AdoptPod, ...] = ()
    release: tuple[ReleasePod, ...] = ()


def claim_pods(nodeset: NodeSet, pods: Iterable[PodView]) -> Claims:
    """Sort pods of the NodeSet's namespace into ours, to adopt, to release, and not our business."""
    ours: list[PodView] = []
    adopt: list[AdoptPod] = []
    release: list[ReleasePod] = []
    deleting = nodeset.metadata.deletion_timestamp is not None
    for pod in pods:
        owned, fits = is_owned(nodeset, pod), _selected(nodeset, pod)
        if owned and fits:
            ours.append(pod)
        elif owned and not deleting:
            release.append(ReleasePod(name=pod.metadata.name, uid=pod.metadata.uid))
        elif fits and not deleting and _is_orphan_of(nodeset, pod):
            adopt.append(AdoptPod(name=pod.metadata.name, uid=pod.metadata.uid))
    return Claims(pods=tuple(ours), adopt=tuple(adopt), release=tuple(release))


def is_owned(nodeset: NodeSet, pod: PodView) -> bool:
    """The pod's controller is exactly this NodeSet."""
    owner, meta = pod.metadata.controller, nodeset.metadata
    return owner is not None and (owner.api_version, owner.kind, owner.name, owner.uid) == (
        API_VERSION,
        "NodeSet",
        meta.name,
        meta.uid,
    )


def _selected(nodeset: NodeSet, pod: PodView) -> bool:
    labels = pod.metadata.labels
    wanted = names.selector_labels(keys.SLURMD, nodeset.metadata.name)
    return all(labels.get(key) == value for key, value in wanted.items())


def _is_orphan_of(nodeset: NodeSet, pod: PodView) -> bool:
    if pod.metadata.controller is not None or pod.terminating:
        return False
    if nodeset.daemon:
        return pod.metadata.generate_name.removesuffix("-") == nodeset.metadata.name
    parent, ordinal = names.split_ordinal(pod.metadata.name)
    return parent == nodeset.metadata.name and ordinal >= 0
