"""The generated CRDs hold every field of the field table, and no other.

The table names types of Kubernetes by their Go package; here is the schema that each name stands for.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coil.api import crd
from coil.api.kinds import KINDS, Kind

TABLE = Path(__file__).parents[2] / "data" / "crd-fields.tsv"
FREE_FORM = "(schemaless, unknown fields preserved)"
ATOMIC = {"x-kubernetes-map-type": "atomic"}
TEXT = {"type": "string"}
QUANTITIES = "map of quantity"


def obj(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def selector() -> dict[str, Any]:
    named = {"type": "string", "default": ""}
    return {**obj(("key",), key=TEXT, name=named, optional={"type": "boolean"}), **ATOMIC}


INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
# Two types with one schema: the table tells Secrets and ConfigMaps apart, a schema does not.
SELECTORS = ("core/v1.SecretKeySelector", "core/v1.ConfigMapKeySelector")
NAMED_TYPES: dict[str, dict[str, Any]] = {
    "meta/v1.ObjectMeta": {"type": "object"},
    "core/v1.LocalObjectReference": {**obj(name={"type": "string", "default": ""}), **ATOMIC},
    "core/v1.KeySelector": selector(),
    "core/v1.TypedLocalObjectReference": {
        **obj(("kind", "name"), apiGroup=TEXT, kind=TEXT, name=TEXT),
        **ATOMIC,
    },
    "core/v1.TypedObjectReference": obj(
        ("kind", "name"), apiGroup=TEXT, kind=TEXT, name=TEXT, namespace=TEXT
    ),
    "core/v1.VolumeResourceRequirements": obj(limits=QUANTITIES, requests=QUANTITIES),
    "meta/v1.LabelSelector": {
        **obj(
            matchExpressions={
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": obj(
                    ("key", "operator"),
                    key=TEXT,
                    operator=TEXT,
                    values={"type": "array", "items": TEXT, "x-kubernetes-list-type": "atomic"},
                ),
            },
            matchLabels={"type": "object", "additionalProperties": TEXT},
        ),
        **ATOMIC,
    },
    "apps/v1.DeploymentStrategy": obj(
        rollingUpdate=obj(maxSurge=INT_OR_STRING, maxUnavailable=INT_OR_STRING), type=TEXT
    ),
}


def bare(schema: Any) -> Any:
    """The schema without descriptions, maps of quantities as one word."""
    if isinstance(schema, list):
        return [bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "KMGTPE" in str(schema.get("additionalProperties", "")):
        return QUANTITIES
    return {key: bare(value) for key, value in schema.items() if key != "description"}


def type_name(schema: dict[str, Any]) -> str:
    plain = {key: value for key, value in bare(schema).items() if key not in {"default", "nullable"}}
    named = next((name for name, known in NAMED_TYPES.items() if plain == known), None)
    if named or schema.get("x-kubernetes-preserve-unknown-fields"):
        return named or f"object {FREE_FORM}"
    if schema.get("x-kubernetes-int-or-string"):
        return "integer|string"
    if schema["type"] == "array":
        return f"array of {type_name(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map of {type_name(schema['additionalProperties'])}"
    condition = {"lastTransitionTime", "reason", "status"} <= set(schema.get("properties", ()))
    return "meta/v1.Condition" if condition else str(schema["type"])


def validations(schema: dict[str, Any]) -> str:
    found = [f"{key}={schema[key]}" for key in ("format", "minimum", "pattern") if key in schema]
    if "x-kubernetes-map-type" in schema:
        found.append(f"map-type={schema['x-kubernetes-map-type']}")
    if schema.get("x-kubernetes-list-type") == "map":
        found.append(f"list-type=map({','.join(schema['x-kubernetes-list-map-keys'])})")
    elif "x-kubernetes-list-type" in schema:
        found.append(f"list-type={schema['x-kubernetes-list-type']}")
    found += ["int-or-string"] if schema.get("x-kubernetes-int-or-string") else []
    found += ["nullable"] if schema.get("nullable") else []
    found += [f"CEL: {rule['rule']}" for rule in schema.get("x-kubernetes-validations", ())]
    return "; ".join(found)


def lines(kind: str, path: str, schema: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """The lines of the table for the members of an object."""
    for name, member in schema["properties"].items():
        kind_of = type_name(member)
        marker = {"array": "[]", "map": "{}"}.get(kind_of.split()[0], "") if FREE_FORM not in kind_of else ""
        here = f"{path}{name}{marker}"
        default = member.get("default", "")
        yield (
            kind,
            here,
            kind_of,
            str(default).lower() if isinstance(default, bool) else str(default),
            ",".join(member.get("enum", ())),
            "y" if name in schema.get("required", ()) else "n",
            validations(member),
        )
        inner = member.get("items", member)
        if kind_of in {"object", "array of object"} and "properties" in inner:
            yield from lines(kind, f"{here}.", inner)


def generated(kind: Kind) -> set[tuple[str, ...]]:
    (version,) = crd.definition(kind)["spec"]["versions"]
    return set(lines(kind.kind, "", version["schema"]["openAPIV3Schema"]))


def wanted(kind: Kind) -> set[tuple[str, ...]]:
    with TABLE.open(newline="") as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    return {(row[0], row[1], comparable(row[2]), *row[3:]) for row in rows if row[0] == kind.kind}


def comparable(name: str) -> str:
    """The type's name as far as a schema tells it."""
    if name in SELECTORS:
        return "core/v1.KeySelector"
    if FREE_FORM in name:
        return f"array of object {FREE_FORM}" if name.startswith("array of") else f"object {FREE_FORM}"
    return name


def test_table_is_read_whole() -> None:
    assert sum(len(wanted(kind)) for kind in KINDS) == 219


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_crd_has_the_fields_of_the_table_and_no_other(kind: Kind) -> None:
    assert generated(kind) - wanted(kind) == set(), "generated and not in the table"
    assert wanted(kind) - generated(kind) == set(), "in the table and not generated"
