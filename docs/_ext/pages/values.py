"""Every value of the charts, from the comments of their values.yaml."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from docs._ext.pages import code, table

CHARTS = Path(__file__).resolve().parents[3] / "charts"


def page() -> str:
    """The page, in Markdown."""
    parts = ["# Values of the charts\n"]
    for values in sorted(CHARTS.glob("*/values.yaml")):
        parts += [
            f"## {values.parent.name}\n",
            table(["value", "default", "meaning"], rows(values.read_text())),
        ]
    return "\n".join(parts)


def rows(text: str) -> Iterator[tuple[str, str, str]]:
    """Path, default and meaning of each value of a values.yaml.

    The meaning is the comment right above a value.
    """
    root = yaml.compose(text, yaml.SafeLoader)
    if isinstance(root, yaml.MappingNode):
        yield from _members("", root, text.splitlines())


def _members(path: str, mapping: yaml.MappingNode, lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    for key, value in mapping.value:
        below = f"{path}.{key.value}" if path else key.value
        about = _comment(lines, key.start_mark.line)
        nested = isinstance(value, yaml.MappingNode) and value.value
        if about or not nested:
            yield code(below), "" if nested else code(_default(value)), about
        if nested:
            yield from _members(below, value, lines)


def _comment(lines: Sequence[str], line: int) -> str:
    """The comment lines right above a line, in one."""
    found: list[str] = []
    while line > 0 and lines[line - 1].strip().startswith("#"):
        line -= 1
        found.insert(0, lines[line].strip().removeprefix("#").strip())
    return " ".join(found)


def _default(node: yaml.Node) -> str:
    return json.dumps(yaml.safe_load(yaml.serialize(node)))
