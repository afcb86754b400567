"""Render charts with the real Helm, and normalise what comes out as `tests/data/charts` is normalised."""

import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import binaries

ROOT = Path(__file__).parents[2]
CHARTS = ROOT / "charts"
CASES = ROOT / "tests" / "data" / "charts"
Document = dict[str, Any]


class RenderError(Exception):
    """Helm refused; the text is what it said."""


@dataclass(frozen=True)
class Case:
    """One values file with the arguments that its header gives."""

    name: str
    header: dict[str, str]
    sets: tuple[str, ...] = field(default=())

    @property
    def values(self) -> Path:
        """The values file."""
        return CASES / self.name / "values.yaml"

    @property
    def golden(self) -> list[Document]:
        """What the reference renders."""
        return list(yaml.safe_load_all((CASES / self.name / "output.yaml").read_text()))

    @property
    def must_fail(self) -> bool:
        """Whether the reference fails."""
        return "fails" in self.header


def cases() -> list[Case]:
    """Every case, by name."""
    return [_read(folder) for folder in sorted(CASES.iterdir()) if folder.is_dir()]


def _read(folder: Path) -> Case:
    lines = [line[2:] for line in (folder / "values.yaml").read_text().splitlines() if line.startswith("# ")]
    pairs = [line.split(": ", 1) for line in lines if re.match(r"[a-z-]+: ", line)]
    sets = tuple(value for key, value in pairs if key == "set")
    return Case(folder.name, dict(pairs), sets)


def helm() -> Path:
    """The Helm binary, or that of COIL_HELM (helm4); skips the test where it is not built."""
    name = os.environ.get("COIL_HELM", "helm")
    if not binaries.COMPONENTS[name].built:
        pytest.skip(f"{name} is not built: run `python -m lab build {name}`")
    return binaries.binary(name)


def template(
    chart: str, *arguments: str, release: str = "", namespace: str = "ns", kube_version: str = "1.34.0"
) -> list[Document]:
    """The documents that `helm template` prints.

    Raises:
        RenderError: Helm refused.
    """
    command = [str(helm()), "template", release or chart, str(CHARTS / chart), "--namespace", namespace]
    command += ["--kube-version", kube_version, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RenderError(done.stderr)
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def render(case: Case, *arguments: str) -> list[Document]:
    """The documents of a case, normalised.

    Raises:
        RenderError: Helm refused.
    """
    header = case.header
    sets = [word for expression in case.sets for word in ("--set", expression)]
    documents = template(
        header["chart"],
        "--values",
        str(case.values),
        *sets,
        "--skip-tests",
        *arguments,
        release=header["release"],
        namespace=header["namespace"],
        kube_version=header.get("kube-version", "1.34.0"),
    )
    return normalise(documents, version(header["chart"]))


def version(chart: str) -> str:
    """The version of one of our charts."""
    return str(yaml.safe_load((CHARTS / chart / "Chart.yaml").read_text())["version"])


def normalise(documents: list[Document], chart_version: str) -> list[Document]:
    """Sort by kind and name; nulls go, whole floats are integers, the chart's version is a placeholder."""
    bare = [_definition_name(document) for document in documents]
    plain = [_sorted_rules(_plain(document, chart_version)) for document in bare]
    return sorted(plain, key=lambda document: (document["kind"], document["metadata"]["name"]))


def _definition_name(document: Document) -> Document:
    if document["kind"] != "CustomResourceDefinition":
        return document
    return {"kind": document["kind"], "metadata": {"name": document["metadata"]["name"]}}


def _sorted_rules(document: Document) -> Document:
    """Rules of roles in one order: theirs means nothing."""
    if document["kind"] not in {"ClusterRole", "Role"}:
        return document
    return {**document, "rules": sorted(document["rules"], key=json.dumps)}


def _plain(value: Any, chart_version: str) -> Any:
    if isinstance(value, dict):
        return {key: _plain(member, chart_version) for key, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_plain(member, chart_version) for member in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        return _version_placeholder(value, chart_version)
    return value


def _version_placeholder(text: str, chart_version: str) -> str:
    if text == chart_version:
        return "<chart-version>"
    for separator in ("-", ":"):
        if text.endswith(separator + chart_version) and "\n" not in text:
            return text.removesuffix(chart_version) + "<chart-version>"
    return text


def matches(got: Any, wanted: Any) -> bool:
    """Whether a rendering is the golden one; `<random>` and `<script>` stand for any text."""
    if wanted in ("<random>", "<script>"):
        return isinstance(got, str) and got != ""
    if isinstance(wanted, dict) and isinstance(got, dict):
        return got.keys() == wanted.keys() and all(matches(got[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list) and isinstance(got, list):
        return len(got) == len(wanted) and all(map(matches, got, wanted))
    return got == wanted and isinstance(got, bool) == isinstance(wanted, bool)


def differences(got: Any, wanted: Any, path: str = "") -> list[str]:
    """What differs, one line each, for people."""
    if isinstance(got, dict) and isinstance(wanted, dict):
        keys = sorted({*got, *wanted}, key=str)
        return [
            line
            for key in keys
            for line in differences(got.get(key, "(absent)"), wanted.get(key, "(absent)"), f"{path}.{key}")
        ]
    if isinstance(got, list) and isinstance(wanted, list) and len(got) == len(wanted):
        pairs = enumerate(zip(got, wanted, strict=True))
        return [line for index, (a, b) in pairs for line in differences(a, b, f"{path}[{index}]")]
    return [] if matches(got, wanted) else [f"{path}: {got!r} is not {wanted!r}"]


def by_name(documents: list[Document]) -> dict[str, Document]:
    """Documents by kind and name."""
    return {f"{document['kind']}/{document['metadata']['name']}": document for document in documents}
