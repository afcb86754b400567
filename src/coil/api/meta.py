"""References, conditions and metadata that several kinds share."""

from typing import Annotated, ClassVar, Literal

from coil.api.wire import ATOMIC, Nullable, Wire, doc
from coil.support.objects import JsonObject, ObjectKey, ObjectMeta, OwnerReference

__all__ = [
    "Condition",
    "ConfigMapKeySelector",
    "JsonObject",
    "LocalObjectReference",
    "Metadata",
    "ObjectKey",
    "ObjectMeta",
    "OwnerReference",
    "SecretKeySelector",
]

GROUP = "slinky.slurm.net"
VERSION = "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"


class LocalObjectReference(Wire, frozen=True, kw_only=True, gc=False):
    """Names an object in the same namespace."""

    schema: ClassVar[JsonObject] = ATOMIC

    name: Annotated[str, doc("Name of the object.", server_default=True)] = ""


class SecretKeySelector(Wire, frozen=True, kw_only=True, gc=False):
    """Names one key of a Secret in the same namespace."""

    schema: ClassVar[JsonObject] = ATOMIC

    name: Annotated[str, doc("Name of the Secret.", server_default=True)] = ""
    key: Annotated[str, doc("Key inside the Secret's data.", required=True)] = ""
    optional: Annotated[bool | None, doc("Accepted for compatibility; has no effect.")] = None


class ConfigMapKeySelector(Wire, frozen=True, kw_only=True, gc=False):
    """Names one key of a ConfigMap in the same namespace."""

    schema: ClassVar[JsonObject] = ATOMIC

    name: Annotated[str, doc("Name of the ConfigMap.", server_default=True)] = ""
    key: Annotated[str, doc("Key inside the ConfigMap's data.", required=True)] = ""
    optional: Annotated[bool | None, doc("Accepted for compatibility; has no effect.")] = None


class Metadata(Wire, frozen=True, kw_only=True):
    """Labels and annotations for the objects that are made from a template."""

    annotations: Annotated[Nullable[dict[str, str]], doc("Annotations to add.")] = {}
    labels: Annotated[Nullable[dict[str, str]], doc("Labels to add. Labels of the operator win.")] = {}


_REASON = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


class Condition(Wire, frozen=True, kw_only=True, gc=False):
    """One observation about the object (meta/v1 Condition)."""

    last_transition_time: Annotated[
        str, doc("When the status last changed (RFC 3339).", required=True, schema={"format": "date-time"})
    ] = ""
    message: Annotated[
        str, doc("Explanation for people; may be empty.", required=True, schema={"maxLength": 32768})
    ] = ""
    observed_generation: Annotated[
        int,
        doc(
            "metadata.generation that the condition was derived from.",
            schema={"format": "int64", "minimum": 0},
        ),
    ] = 0
    reason: Annotated[
        str,
        doc(
            "CamelCase identifier of the cause.",
            required=True,
            schema={"maxLength": 1024, "minLength": 1, "pattern": _REASON},
        ),
    ] = ""
    status: Annotated[Literal["True", "False", "Unknown"], doc("True, False or Unknown.", required=True)] = (
        "Unknown"
    )
    type: Annotated[
        str,
        doc("CamelCase name of the condition.", required=True, schema={"maxLength": 316, "pattern": _TYPE}),
    ] = ""
