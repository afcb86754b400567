"""Metadata of the objects that coil makes (spec: control-plane 3.1 and 3.2).

Labels and annotations come from several sources of which later ones win; the operator's labels come
last, so users cannot displace them. The annotation in which `kubectl apply` keeps its last input is not
copied to children: with it every apply would make pods anew (Q1). Nor is what the operator remembers.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from coil.api import keys
from coil.build.errors import BuildError
from coil.support.objects import JsonObject, ObjectMeta

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NOT_COPIED = frozenset({LAST_APPLIED, keys.ANNOTATION_HELD, keys.ANNOTATION_REHEARSAL})
_LABEL_LENGTH = 63
_BOOKS = _NOT_COPIED | {"helm.sh/chart", "app.kubernetes.io/version", "app.kubernetes.io/managed-by"}
_BOOKS_IN = ("meta.helm.sh/", "argocd.argoproj.io/", "fluxcd.io/")

Texts = Mapping[str, str]


class Owner(Protocol):
    """A custom resource that owns what is built from it."""

    @property
    def api_version(self) -> str:
        """Group and version."""
        ...

    @property
    def kind(self) -> str:
        """Kind."""
        ...

    @property
    def metadata(self) -> ObjectMeta:
        """Name, namespace and uid."""
        ...


def object_metadata(
    name: str, owner: Owner, labels: Sequence[Texts], annotations: Sequence[Texts]
) -> JsonObject:
    """Metadata of an object that `owner` controls, in the owner's namespace."""
    return {**template_metadata(name, owner, labels, annotations), "ownerReferences": [controller_of(owner)]}


def template_metadata(
    name: str, owner: Owner, labels: Sequence[Texts], annotations: Sequence[Texts]
) -> JsonObject:
    """Metadata of a pod template in a workload of that name."""
    metadata: JsonObject = {"name": name, "namespace": owner.metadata.namespace}
    for member, sources in (("labels", labels), ("annotations", annotations)):
        if merged := overlay(*sources):
            metadata[member] = merged
    return metadata


def overlay(*sources: Texts) -> dict[str, str]:
    """The sources as one map, later ones winning, without what concerns their owner alone."""
    return {key: value for source in sources for key, value in source.items() if key not in _NOT_COPIED}


def counted(metadata: Mapping[str, Texts]) -> dict[str, dict[str, str]]:
    """Labels and annotations that pods are made anew for: not the books of tools that install things."""
    texts = {
        member: {name: text for name, text in metadata.get(member, {}).items() if not _is_book(name)}
        for member in ("labels", "annotations")
    }
    return {member: kept for member, kept in texts.items() if kept}


def _is_book(name: str) -> bool:
    return name in _BOOKS or any(domain in name for domain in _BOOKS_IN)


def controller_of(owner: Owner) -> JsonObject:
    """The owner reference of an object that `owner` controls."""
    return {**owner_reference(owner), "controller": True}


def owner_reference(owner: Owner) -> JsonObject:
    """The owner reference of an object that `owner` shares with others."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "blockOwnerDeletion": True,
    }


def fits_label(value: str, where: str) -> str:
    """`value`, when it is short enough for a label, a Service or a host name.

    Raises:
        BuildError: it is longer than the 63 characters that Kubernetes allows.
    """
    if len(value) > _LABEL_LENGTH:
        excess = len(value) - _LABEL_LENGTH
        raise BuildError(where, f"makes the name {value}, {excess} characters longer than Kubernetes allows")
    return value
