"""Persistent storage of the slurmctld state (core/v1 PersistentVolumeClaimSpec, inlined)."""

from typing import Annotated, ClassVar

import msgspec

from coil.api.wire import ATOMIC, Wire, doc
from coil.support.objects import JsonObject

ATOMIC_LIST = {"x-kubernetes-list-type": "atomic"}
_NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
_QUANTITY = rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$"

Quantity = Annotated[int | str, msgspec.Meta(extra={"schema": {"pattern": _QUANTITY}})]
"""A Kubernetes quantity such as `10Gi`."""


class TypedLocalObjectReference(Wire, frozen=True, kw_only=True, gc=False):
    """Names an object of any kind in the same namespace."""

    schema: ClassVar[JsonObject] = ATOMIC

    api_group: Annotated[str, doc("API group; absent: core.")] = ""
    kind: Annotated[str, doc("Kind of the object.", required=True)] = ""
    name: Annotated[str, doc("Name of the object.", required=True)] = ""


class TypedObjectReference(Wire, frozen=True, kw_only=True, gc=False):
    """Names an object of any kind, possibly in another namespace."""

    api_group: Annotated[str, doc("API group; absent: core.")] = ""
    kind: Annotated[str, doc("Kind of the object.", required=True)] = ""
    name: Annotated[str, doc("Name of the object.", required=True)] = ""
    namespace: Annotated[str, doc("Namespace of the object; needs a ReferenceGrant when set.")] = ""


class VolumeResourceRequirements(Wire, frozen=True, kw_only=True):
    """Storage asked for."""

    limits: Annotated[dict[str, Quantity], doc("Most that may be used.")] = {}
    requests: Annotated[dict[str, Quantity], doc("Least that is needed; `storage` is the size.")] = {}


class LabelSelectorRequirement(Wire, frozen=True, kw_only=True):
    """One rule on a label."""

    key: Annotated[str, doc("Label the rule is about.", required=True)] = ""
    operator: Annotated[str, doc("In, NotIn, Exists or DoesNotExist.", required=True)] = ""
    values: Annotated[list[str], doc("Values for In and NotIn.", schema=ATOMIC_LIST)] = []


class LabelSelector(Wire, frozen=True, kw_only=True):
    """Selects objects by label; all rules must hold."""

    schema: ClassVar[JsonObject] = ATOMIC

    match_expressions: Annotated[
        list[LabelSelectorRequirement], doc("Rules on labels.", schema=ATOMIC_LIST)
    ] = []
    match_labels: Annotated[dict[str, str], doc("Labels that must have these values.")] = {}


class Persistence(Wire, frozen=True, kw_only=True):
    """Claim for the state of slurmctld. Ignored after creation: claim templates cannot be changed."""

    enabled: Annotated[
        bool, doc("Keep the state of slurmctld on a claim.", server_default=True, required=True)
    ] = True
    existing_claim: Annotated[str, doc("Use this claim instead of making one.")] = ""
    access_modes: Annotated[list[str], doc("Access modes of the volume.", schema=ATOMIC_LIST)] = []
    data_source: Annotated[TypedLocalObjectReference | None, doc("Snapshot or claim to start from.")] = None
    data_source_ref: Annotated[
        TypedObjectReference | None, doc("Object of any kind to fill the volume from.")
    ] = None
    resources: Annotated[VolumeResourceRequirements, doc("Size of the volume.")] = msgspec.field(
        default_factory=VolumeResourceRequirements
    )
    selector: Annotated[LabelSelector | None, doc("Volumes to consider.")] = None
    storage_class_name: Annotated[
        str | None, doc("StorageClass; absent: the cluster's default, empty text: none.")
    ] = None
    volume_attributes_class_name: Annotated[str | None, doc("VolumeAttributesClass of the claim.")] = None
    volume_mode: Annotated[str | None, doc("Filesystem (default) or Block.")] = None
    volume_name: Annotated[str, doc("PersistentVolume to bind to.")] = ""
