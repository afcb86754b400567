"""Every field of the six kinds, from the CustomResourceDefinitions."""

import json
from collections.abc import Iterator

from coil.api import crd
from coil.api.kinds import KINDS, Kind
from coil.api.meta import JsonObject
from docs._ext.pages import code, table


def page() -> str:
    """The page, in Markdown."""
    parts = ["# Fields of the custom resources\n"]
    for kind in KINDS:
        parts += [
            f"## {kind.kind}\n",
            _about(kind),
            table(["field", "type", "default", "meaning"], _rows(kind)),
        ]
    return "\n".join(parts)


def _about(kind: Kind) -> str:
    short = ", ".join(map(code, kind.short_names)) or "none"
    schema = _schema(kind)
    return f"{schema['description']} Plural `{kind.plural}`, short names: {short}.\n"


def _schema(kind: Kind) -> JsonObject:
    schema: JsonObject = crd.definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _rows(kind: Kind) -> Iterator[tuple[str, str, str, str]]:
    for part in ("spec", "status"):
        yield from _members(part, _schema(kind)["properties"][part])


def _members(path: str, schema: JsonObject) -> Iterator[tuple[str, str, str, str]]:
    required = schema.get("required", ())
    for name, member in schema.get("properties", {}).items():
        below = f"{path}.{name}"
        default = code(json.dumps(member["default"])) if "default" in member else ""
        meaning = member.get("description", "")
        yield code(below), _type(member), default or ("required" if name in required else ""), meaning
        yield from _members(below, member)
        yield from _members(f"{below}[]", member.get("items", {}))


def _type(schema: JsonObject) -> str:
    if "enum" in schema:
        return " or ".join(map(code, schema["enum"]))
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map to {_type(schema['additionalProperties'])}"
    return str(schema.get("type", "any"))
