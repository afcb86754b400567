"""Invariant I9: no text of a user adds a line or a parameter to a generated file that its field does not own.

The fields come from the CRDs, so a new one is tested without being named here. What a field owns is named:
`extraConf` its section, a partition's `config` the rest of its line.
"""

import os
import random
import re
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from coil.api.accounting import Accounting
from coil.api.controller import Controller
from coil.api.kinds import ACCOUNTING, CONTROLLER, NODESET, Kind
from coil.api.nodeset import NodeSet
from coil.build.accounting import slurmdbd_conf
from coil.build.errors import BuildError
from coil.build.slurmconf import ConfigInputs, config_files
from tests.support.fields import WORD, Path, complete, replaced, spec_schema, texts

EXAMPLES = int(os.environ.get("COIL_EXAMPLES", "100"))
"""Texts for each field; 500 is the long form."""

PIECES = (
    *("\n", "\r", "\r\n", "\v", "\f", "\0", "\x1c", "\x85", "\u2028", "\t", " ", "  ", "\\", "\\\n"),
    *("#", '"', "'", "=", ",", ";", ":", "`", "$(id)", "${X}", "%n", "[1-3]", "()", "*", "-", "/", "../"),
    *("a", "ü", "\U0001f41b", "PluginDir=/x", "PrologSlurmctld=/x", "NodeName=x", "PartitionName=x"),
    *("Include /x", "StoragePass=x", "DEFAULT"),
)
PLAIN = ("a\nPluginDir=/x", "a PluginDir=/x", "a\\", "\n", "a # b", 'a" PluginDir=/x', "", "a\rPluginDir=/x")
OWNERS: dict[Path, str] = {
    ("extraConf",): "its own section and, of the option lists that are merged, their values",
    ("partition", "config"): "the rest of its line",
}
SCHEMALESS: dict[str, tuple[Path, ...]] = {NODESET.kind: (("template", "spec", "hostname"),)}
"""Members that reach a file though the schema does not know them."""


def hostile() -> list[str]:
    """The plainest attacks, then random ones, always the same."""
    dice = random.Random(9)  # noqa: S311 -- test data
    return [*PLAIN, *("".join(dice.choices(PIECES, k=dice.randint(1, 6))) for _ in range(EXAMPLES))]


class AnyFiles(dict[str, Mapping[str, str]]):
    """Every ConfigMap exists, whatever its name."""

    def get(self, key: str, default: Any = None) -> Any:
        del key, default
        return {"file.conf": ""}


def spec_of(kind: Kind) -> dict[str, Any]:
    """A complete spec that is rendered: not of something outside, and with every section."""
    spec = complete(spec_schema(kind))
    if "external" in spec:
        spec["external"] = False
    spec.pop("extraConf", None)
    if kind is NODESET:
        spec["controllerRef"]["name"] = "alba"
        spec["partition"]["config"] = "State=UP"
        spec["template"] = {"spec": {"hostname": WORD}}
    return spec


def read(view: type[Any], name: str, spec: dict[str, Any]) -> Any:
    return msgspec.convert({"metadata": {"name": name, "namespace": "ns"}, "spec": spec}, view, strict=False)


def rendered(kind: Kind, spec: dict[str, Any]) -> str:
    """All files that depend on the object, as one text."""
    mine: Any = read(kind.view, "mine", spec)
    controller = read(Controller, "alba", spec_of(CONTROLLER)) if kind is not CONTROLLER else mine
    outside = {"external": True, "externalConfig": {"host": "db", "port": 1}}
    accounting = mine if isinstance(mine, Accounting) else read(Accounting, "db", outside)
    nodesets = [mine] if isinstance(mine, NodeSet) else []
    inputs = ConfigInputs(nodesets=nodesets, accounting=accounting, config_maps=AnyFiles())
    files = [*config_files(controller, inputs).values()]
    if isinstance(mine, Accounting) and not mine.spec.external:
        files.append(slurmdbd_conf(mine, b"secret"))
    return "\n".join(files)


def shape(text: str) -> list[tuple[str, ...]]:
    """The parameter names on each line as Slurm reads it: quoted text, comments and joined lines resolved."""
    joined = re.sub(r"\\\r?\n", "", text)
    bare = [re.sub(r'"[^"\n]*"', "Q", re.sub(r"\\[\\#]", "_", line)) for line in joined.split("\n")]
    lines = [line.partition("#")[0] for line in bare]
    names = [tuple(re.findall(r"(?:^|\s)(\w+)\s*=", line)) or tuple(line.split()) for line in lines]
    return [found for found in names if found]


def within(found: list[tuple[str, ...]], wanted: list[tuple[str, ...]]) -> bool:
    """Whether all lines are there in that order; some may be left out."""
    rest = iter(wanted)
    return all(line in rest for line in found)


FIELDS = [
    (kind, path)
    for kind in (CONTROLLER, NODESET, ACCOUNTING)
    for path in (*texts(spec_schema(kind)), *SCHEMALESS.get(kind.kind, ()))
    if path not in OWNERS
]


def reaches_a_file(kind: Kind, spec: dict[str, Any], path: Path) -> bool:
    return rendered(kind, replaced(spec, path, "other")) != rendered(kind, spec)


@pytest.mark.parametrize(
    ("kind", "outside"),
    [(CONTROLLER, False), (CONTROLLER, True), (ACCOUNTING, False), (ACCOUNTING, True), (NODESET, False)],
)
def test_no_field_adds_a_line_or_a_parameter(kind: Kind, *, outside: bool) -> None:
    """Fields that reach no file are tried with two attacks only."""
    spec = {**spec_of(kind), **({"external": True} if outside else {})}
    wanted = shape(rendered(kind, spec))
    for path in (path for of, path in FIELDS if of is kind):
        for text in hostile() if reaches_a_file(kind, spec, path) else PLAIN[:2]:
            try:
                found = shape(rendered(kind, replaced(spec, path, text)))
            except BuildError:
                continue
            assert within(found, wanted), f"{path}: {text!r}"


def test_the_rest_of_a_partition_line_is_all_that_its_config_owns() -> None:
    spec = spec_of(NODESET)
    wanted = [line[:2] for line in shape(rendered(NODESET, spec))]
    for text in hostile():
        found = shape(rendered(NODESET, replaced(spec, ("partition", "config"), text)))
        assert within([line[:2] for line in found], wanted), repr(text)


def test_the_fields_that_reach_a_file_are_among_those_found() -> None:
    """The search above is not blind: these do change the text."""
    known = {
        (CONTROLLER, ("clusterName",)),
        (NODESET, ("template", "spec", "hostname")),
        (ACCOUNTING, ("storageConfig", "host")),
        (ACCOUNTING, ("storageConfig", "database")),
        (ACCOUNTING, ("storageConfig", "username")),
    }
    changed = {(kind, path) for kind, path in FIELDS if reaches_a_file(kind, spec_of(kind), path)}
    assert known <= changed
    assert len(FIELDS) > 50
