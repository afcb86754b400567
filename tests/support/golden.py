"""The golden corpus: custom resources and the objects that the reference operator made of them.

Layout, origin and normalisation of the files are told in `tests/data/golden/README.md`. A case is a
folder with `input.yaml`, `output.yaml` and, for later steps, `input-N.yaml` and `output-N.yaml`.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import yaml

from coil.api.kinds import KINDS
from coil.build.hashes import map_hash
from coil.support.objects import JsonObject

CORPUS = Path(__file__).parents[1] / "data" / "golden"
UID = "0b5e4b0a-9d0f-4c1e-9a43-6d5f2f6b1c11"
_PLACEHOLDER = re.compile(r"(.*)<\w+>", re.DOTALL)
_VIEWS = {kind.kind: kind.view for kind in KINDS}

K = TypeVar("K")


class Step(NamedTuple):
    """One step of a case: everything applied so far, and what the reference made of it."""

    case: str
    number: int
    inputs: dict[tuple[str, str], JsonObject]
    outputs: dict[tuple[str, str], JsonObject]
    custom_resources: dict[tuple[str, str], JsonObject]

    def __str__(self) -> str:
        return f"{self.case}-{self.number}"

    @property
    def namespace(self) -> str:
        """Where everything of the case is."""
        return next(name for kind, name in self.inputs if kind == "Namespace")

    def all(self, view: type[K]) -> list[K]:
        """The custom resources of a kind, as the operator would read them."""
        found = [doc for (kind, _), doc in self.inputs.items() if _VIEWS.get(kind) is view]
        return [msgspec.convert(doc, view) for doc in found]

    def data(self, kind: str, name: str) -> dict[str, str] | None:
        """Content of a ConfigMap or Secret of the input; None when there is none."""
        found = self.inputs.get((kind, name))
        return None if found is None else {**found.get("data", {}), **found.get("stringData", {})}

    def secret_hash(self, name: str) -> str:
        """Map hash of a Secret of the input."""
        return map_hash(self.data("Secret", name))

    def outputs_of(self, *kinds: str) -> dict[tuple[str, str], JsonObject]:
        """The objects of these kinds that the reference made."""
        return {key: value for key, value in self.outputs.items() if key[0] in kinds}


@cache
def cases() -> list[str]:
    """The names of all cases."""
    return sorted(path.name for path in CORPUS.iterdir() if path.is_dir())


@cache
def steps(case: str) -> list[Step]:
    """The steps of a case, in order."""
    found: list[Step] = []
    inputs: dict[tuple[str, str], JsonObject] = {}
    for number, suffix in enumerate(_suffixes(case), start=1):
        documents = yaml.load_all((CORPUS / case / f"input{suffix}.yaml").read_text(), yaml.CSafeLoader)
        inputs = inputs | {(doc["kind"], doc["metadata"]["name"]): doc for doc in documents}
        namespace = next(name for kind, name in inputs if kind == "Namespace")
        for doc in inputs.values():
            doc["metadata"] |= {"namespace": namespace, "uid": UID}
        output = yaml.load((CORPUS / case / f"output{suffix}.yaml").read_text(), yaml.CSafeLoader)
        objects = {_identity(item): item for item in output["objects"]}
        resources = {(item["kind"], item["name"]): item for item in output["customResources"]}
        found.append(Step(case, number, inputs, objects, resources))
    return found


def all_steps() -> list[Step]:
    """All steps of all cases."""
    return [step for case in cases() for step in steps(case)]


def _suffixes(case: str) -> Iterator[str]:
    yield ""
    number = 2
    while (CORPUS / case / f"input-{number}.yaml").exists():
        yield f"-{number}"
        number += 1


def _identity(item: JsonObject) -> tuple[str, str]:
    """Kind and name; pods with generated names are told apart by their host names."""
    name = item["metadata"]["name"]
    if item["kind"] == "Pod" and "<" in name:
        name = f"{name}/{item['spec']['hostname']}"
    return item["kind"], name


def differences(expected: Any, actual: Any, path: str = "") -> list[str]:
    """Where `actual` is not what the corpus says; placeholders match any value that is present."""
    if isinstance(expected, dict) and isinstance(actual, Mapping):
        return [
            found
            for name in sorted(expected.keys() | actual.keys())
            for found in differences(expected.get(name), actual.get(name), f"{path}.{name}")
        ]
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = enumerate(zip(expected, actual, strict=True))
        return [found for index, pair in pairs for found in differences(*pair, f"{path}[{index}]")]
    if isinstance(expected, str) and actual and (mark := _PLACEHOLDER.fullmatch(expected)):
        return [] if str(actual).startswith(mark[1]) else [f"{path}: {expected!r} != {actual!r}"]
    return [] if expected == actual else [f"{path}: {expected!r} != {actual!r}"]
