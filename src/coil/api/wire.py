"""How the Structs of this room read the wire, and what they say about their schema.

Structs accept whatever the API server may hold: unknown members are ignored, everything has a default,
and `null` in a nullable list or map means absent. What the API server has to refuse is said with `doc`
and becomes the schema of the CRD (`coil.api.crd`); reading an object does not repeat those checks, so
that one object written under an older schema still loads.
"""

import copy
import functools
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import msgspec

from coil.support.objects import JsonObject

T = TypeVar("T")

ATOMIC: JsonObject = {"x-kubernetes-map-type": "atomic"}
"""Schema of an object that server-side apply replaces as a whole."""

if TYPE_CHECKING:
    Nullable = Annotated[T, "read null as the default"]
else:

    class Nullable:
        """A list or map that the API server may hold as `null`; reads as its default then."""

        def __class_getitem__(cls, item: Any) -> Any:
            """Widen the wire type; the schema says `nullable`."""
            return Annotated[item | None, msgspec.Meta(extra={"nullable": True})]


def doc(
    text: str, *, server_default: bool = False, required: bool = False, schema: JsonObject | None = None
) -> msgspec.Meta:
    """Describe a member for people and for the CRD.

    Args:
        text: What the member means, with its unit and default.
        server_default: The API server writes the Struct's default into objects that lack the member.
        required: The API server refuses an object without the member.
        schema: Further OpenAPI keywords: format, minimum, pattern, x-kubernetes-...
    """
    marks = {"required": required, "server_default": server_default, "schema": schema or {}}
    return msgspec.Meta(description=text, extra=marks)


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all wire types: camelCase names, defaults left out when written, null lists and maps read."""

    schema: ClassVar[JsonObject] = {}
    """OpenAPI keywords that the CRD carries wherever this type is used."""

    def __post_init__(self) -> None:
        for name, default in _nullable_members(type(self)):
            if getattr(self, name) is None:
                msgspec.structs.force_setattr(self, name, copy.copy(default))


@functools.cache
def _nullable_members(struct: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    """Names and (empty) defaults of the members declared `Nullable`."""
    found: list[tuple[str, Any]] = []
    for field in msgspec.structs.fields(struct):
        metas = [meta for meta in getattr(field.type, "__metadata__", ()) if isinstance(meta, msgspec.Meta)]
        if any((meta.extra or {}).get("nullable") for meta in metas):
            found.append((field.name, field.default_factory()))
    return tuple(found)


def rules(*pairs: tuple[str, str]) -> JsonObject:
    """CEL rules, each with the message that a violation gets, for `Wire.schema`."""
    return {"x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in pairs]}
