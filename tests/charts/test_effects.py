"""Every value of the reference has its effect: changed, it is seen in the rendered objects.

Values and effects are in tests/data/helm-effects.yaml.
"""

import csv
import functools
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.charts import ROOT, Document, by_name, template

DATA = ROOT / "tests" / "data"
GROUPS = yaml.safe_load((DATA / "helm-effects.yaml").read_text())
ABSENT = "(absent)"
CHANGES = [
    pytest.param(number, path, id=f"{group['chart']}: {path}")
    for number, group in enumerate(GROUPS)
    for path in group["changes"]
]


def documented() -> list[tuple[str, str]]:
    with (DATA / "helm-schema.tsv").open(newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return sorted((row["chart"], row["path"]) for row in rows)


def nested(values: dict[str, Any]) -> Document:
    """Values by path as a values file has them."""
    result: Document = {}
    for path, value in values.items():
        *parents, last = [part.strip('"') for part in re.findall(r'"[^"]+"|[^.]+', path)]
        level = result
        for parent in parents:
            level = level.setdefault(parent, {})
        level[last] = value
    return result


@functools.cache
def rendered(number: int, *, changed: bool) -> dict[str, Document]:
    group = GROUPS[number]
    layers = [group.get("given", {})]
    if changed:
        layers.append(nested({path: change[0] for path, change in group["changes"].items()}))
    arguments: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for order, layer in enumerate(layers):
            file = Path(folder, f"{order}.yaml")
            file.write_text(yaml.safe_dump(layer))
            arguments += ["--values", str(file)]
        return by_name(template(group["chart"], *arguments))


def effects(number: int, path: str) -> dict[str, Any]:
    """Places where a change is seen, with what is there afterwards."""
    value, *rest = GROUPS[number]["changes"][path]
    if isinstance(rest[0], dict):
        return rest[0]
    return {rest[0]: rest[1] if len(rest) == 2 else value}


def seen(objects: dict[str, Document], place: str, expected: Any) -> bool:
    first, second, *how = place.split(" ")
    if first in {"made", "gone"}:
        return (second in objects) is (first == "made")
    found = at(objects.get(first), second)
    return contains(found, expected) if how else found == expected


def at(value: Any, pointer: str) -> Any:
    """The member that a JSON pointer names."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            value = value[int(key)] if int(key) < len(value) else ABSENT
        else:
            value = value.get(key, ABSENT) if isinstance(value, dict) else ABSENT
    return value


def contains(found: Any, expected: Any) -> bool:
    if isinstance(found, list) and isinstance(expected, list):
        return any(found[start : start + len(expected)] == expected for start in range(len(found)))
    return found not in (None, ABSENT) and expected in found


@pytest.mark.parametrize(("number", "path"), CHANGES)
def test_a_changed_value_is_seen_in_the_objects(number: int, path: str) -> None:
    before, after = rendered(number, changed=False), rendered(number, changed=True)
    for place, expected in effects(number, path).items():
        assert not seen(before, place, expected), f"{place}: the same without the change"
        assert seen(after, place, expected), (place, at(after.get(place.split()[0]), place.split()[1]))


def test_every_documented_value_is_changed_once() -> None:
    changed = sorted((group["chart"], path) for group in GROUPS for path in group["changes"])
    assert changed == documented()


def test_no_two_changes_of_a_rendering_claim_the_same_effect() -> None:
    """What is seen comes from one value: the others of its group show elsewhere, or show another thing."""
    for number, group in enumerate(GROUPS):
        claims = [str(effect) for path in group["changes"] for effect in effects(number, path).items()]
        assert len(claims) == len(set(claims))
