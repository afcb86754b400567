"""Every member of a kind that takes free text, found in its CRD: a new one cannot be forgotten."""

import copy
from collections.abc import Iterator
from typing import Any

from coil.api.crd import definition
from coil.api.kinds import Kind
from coil.support.objects import JsonObject

Path = tuple[str | int, ...]

WORD = "word"
"""What stands in every text member of `complete`."""

_SAMPLES = {"string": WORD, "integer": 1, "number": 1.0, "boolean": True}


def spec_schema(kind: Kind) -> JsonObject:
    """The schema of the kind's spec."""
    version = definition(kind)["spec"]["versions"][0]
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]


def complete(schema: JsonObject) -> Any:
    """A value with every member the schema knows; lists and maps have one item."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return 1
    if "properties" in schema:
        return {name: complete(member) for name, member in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), dict):
        return {WORD: complete(schema["additionalProperties"])}
    if schema["type"] == "array":
        return [complete(schema["items"])]
    return _SAMPLES.get(schema["type"], {})


def texts(schema: JsonObject, path: Path = ()) -> Iterator[Path]:
    """Paths of all members that hold free text."""
    for name, member in schema.get("properties", {}).items():
        yield from texts(member, (*path, name))
    if schema.get("type") == "array":
        yield from texts(schema["items"], (*path, 0))
    if isinstance(schema.get("additionalProperties"), dict):
        yield from texts(schema["additionalProperties"], (*path, WORD))
    if schema.get("x-kubernetes-int-or-string") or (schema.get("type") == "string" and "enum" not in schema):
        yield path


def replaced(value: Any, path: Path, text: str) -> Any:
    """A copy with another text at the path; what is missing on the way is made."""
    made = copy.deepcopy(value)
    place = made
    for step in path[:-1]:
        place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
    place[path[-1]] = text
    return made
