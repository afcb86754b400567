"""Structs to CustomResourceDefinitions (apiextensions.k8s.io/v1).

The schema follows from the types: a Struct is an object, a Literal an enum, `int | str` an int-or-string,
`JsonObject` an object whose members are kept unseen. `coil.api.wire.doc` adds what types cannot say.
Free-form members are typed as objects, so that the API server refuses a text where a container belongs.
"""

import types
import typing
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, Union

import msgspec

from coil.api.kinds import KINDS, Column, Kind
from coil.api.meta import GROUP, VERSION, JsonObject

_SCALARS: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}
_API_VERSION = "Version of the schema of this object."
_KIND = "Kind of this object."


def definition(kind: Kind) -> JsonObject:
    """The CustomResourceDefinition of one kind.

    Helm is told to keep it: with it would go every object of the kind (spec: helm 11, no. 1).
    """
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd_name, "annotations": {"helm.sh/resource-policy": "keep"}},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "shortNames": list(kind.short_names),
                "singular": kind.singular,
            },
            "scope": "Namespaced",
            "versions": [_version(kind)],
        },
    }


def file_name(kind: Kind) -> str:
    """Where the definition is kept in the chart."""
    return f"{GROUP}_{kind.plural}.yaml"


def to_yaml(definitions: Iterable[JsonObject]) -> str:
    """The definitions as YAML documents, members in the order given."""
    import yaml  # noqa: PLC0415 -- the manager reads definitions and never writes YAML

    return yaml.safe_dump_all(definitions, sort_keys=False, width=100, explicit_start=True)


def all_definitions() -> dict[str, JsonObject]:
    """File name to definition, for every kind."""
    return {file_name(kind): definition(kind) for kind in KINDS}


def _version(kind: Kind) -> JsonObject:
    subresources: JsonObject = {"status": {}}
    if kind.scale:
        subresources["scale"] = {
            "labelSelectorPath": ".status.selector",
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
        }
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
        "schema": {"openAPIV3Schema": _root(kind)},
        "subresources": subresources,
    }


def _column(column: Column) -> JsonObject:
    shown: JsonObject = {"jsonPath": column.path, "name": column.name, "type": column.type}
    return {**shown, "priority": column.priority} if column.priority else shown


def _root(kind: Kind) -> JsonObject:
    members = {field.encode_name: _schema(field.type) for field in msgspec.structs.fields(kind.view)}
    members |= {
        "apiVersion": {"description": _API_VERSION, "type": "string"},
        "kind": {"description": _KIND, "type": "string"},
        "metadata": {"type": "object"},
    }
    return {"description": _summary(kind.view), "type": "object", "properties": dict(sorted(members.items()))}


def _schema(kind: Any) -> JsonObject:
    """Schema of any type used in the Structs."""
    origin = typing.get_origin(kind)
    if origin is not None:
        return _COMPOUND[origin](kind)
    return {"type": _SCALARS[kind]} if kind in _SCALARS else _object(kind)


def _enum(kind: Any) -> JsonObject:
    return {"type": "string", "enum": list(typing.get_args(kind))}


def _array(kind: Any) -> JsonObject:
    return {"type": "array", "items": _schema(typing.get_args(kind)[0])}


def _map(kind: Any) -> JsonObject:
    value = typing.get_args(kind)[1]
    if value is Any:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "additionalProperties": _schema(value)}


def _annotated(kind: Any) -> JsonObject:
    """The schema of the type below, with what `doc` and `Nullable` say added."""
    schema = _schema(kind.__origin__)
    for meta in (meta for meta in kind.__metadata__ if isinstance(meta, msgspec.Meta)):
        extra = meta.extra or {}
        if meta.description:
            schema = {**schema, "description": meta.description}
        if extra.get("nullable"):
            schema = {**schema, "nullable": True}
        schema = {**schema, **extra.get("schema", {})}
    return {"description": schema.pop("description"), **schema} if "description" in schema else schema


def _union(kind: Any) -> JsonObject:
    members = [member for member in typing.get_args(kind) if member is not type(None)]
    if len(members) == 1:
        return _schema(members[0])
    if set(members) == {int, str}:
        return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    raise TypeError(f"no schema for {kind}: of the unions only `X | None` and `int | str` have one")


_COMPOUND: dict[Any, Callable[[Any], JsonObject]] = {
    Annotated: _annotated,
    Literal: _enum,
    Union: _union,
    types.UnionType: _union,
    dict: _map,
    list: _array,
}


def _object(struct: type[msgspec.Struct]) -> JsonObject:
    fields = sorted(msgspec.structs.fields(struct), key=lambda field: field.encode_name)
    schema: JsonObject = {
        "description": _summary(struct),
        "type": "object",
        "properties": {field.encode_name: _member(field) for field in fields},
    }
    required = [field.encode_name for field in fields if _mark(field, "required")]
    return {**schema, **({"required": required} if required else {}), **getattr(struct, "schema", {})}


def _member(field: msgspec.structs.FieldInfo) -> JsonObject:
    schema = _schema(field.type)
    return {**schema, "default": field.default} if _mark(field, "server_default") else schema


def _mark(field: msgspec.structs.FieldInfo, name: str) -> bool:
    metas = [meta for meta in getattr(field.type, "__metadata__", ()) if isinstance(meta, msgspec.Meta)]
    return any((meta.extra or {}).get(name) for meta in metas)


def _summary(struct: type) -> str:
    """First sentence of the docstring."""
    return " ".join((struct.__doc__ or "").split("\n\n")[0].split())
