"""The committed CRDs, and what else kubectl and Helm read from them."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from coil.api import crd
from coil.api.kinds import KINDS, LOGINSET, NODESET, TOKEN, Kind
from coil.cli.main import app

CHART = Path(__file__).parents[3] / "charts" / "slurm-operator-crds" / "templates"
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)


def version(kind: Kind) -> dict[str, Any]:
    (only,) = crd.definition(kind)["spec"]["versions"]
    return only


@kinds
def test_committed_crd_is_the_generated_one(kind: Kind) -> None:
    committed = (CHART / crd.file_name(kind)).read_text()
    assert committed == crd.to_yaml([crd.definition(kind)]), "run: make crds"


def test_no_other_template_in_the_crd_chart() -> None:
    assert {path.name for path in CHART.iterdir()} == {crd.file_name(kind) for kind in KINDS}


@kinds
def test_crd_survives_an_uninstall_and_holds_no_template_text(kind: Kind) -> None:
    text = crd.to_yaml([crd.definition(kind)])
    assert crd.definition(kind)["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert "{{" not in text


@kinds
def test_status_is_a_subresource_and_scale_where_specified(kind: Kind) -> None:
    subresources = version(kind)["subresources"]
    assert subresources["status"] == {}
    assert ("scale" in subresources) == (kind in (LOGINSET, NODESET))


def test_printer_columns() -> None:
    names = [column["name"] for column in version(NODESET)["additionalPrinterColumns"]]
    assert names == ["DESIRED", "REPLICAS", "UPDATED", "READY", "IDLE", "ALLOCATED", "DOWN", "DRAIN", "AGE"]
    wide = [
        column["name"] for column in version(NODESET)["additionalPrinterColumns"] if column.get("priority")
    ]
    assert wide == ["IDLE", "ALLOCATED", "DOWN", "DRAIN"]
    assert [column["type"] for column in version(TOKEN)["additionalPrinterColumns"]] == [
        "string",
        "date",
        "date",
    ]


@kinds
def test_every_member_is_described(kind: Kind) -> None:
    def undescribed(schema: dict[str, Any], path: str) -> list[str]:
        missing: list[str] = []
        for name, member in schema.get("properties", {}).items():
            here = f"{path}.{name}"
            missing += [] if member.get("description") or here == ".metadata" else [here]
            missing += undescribed(member.get("items", member), here)
        return missing

    assert undescribed(version(kind)["schema"]["openAPIV3Schema"], "") == []


def test_command_prints_all_definitions() -> None:
    result = CliRunner().invoke(app, ["crds"])
    assert result.exit_code == 0
    assert [document["spec"]["names"]["kind"] for document in yaml.safe_load_all(result.output)] == [
        kind.kind for kind in KINDS
    ]


def test_command_writes_a_folder(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["crds", "--output", str(tmp_path / "new")])
    assert result.exit_code == 0
    assert {path.name for path in (tmp_path / "new").iterdir()} == {crd.file_name(kind) for kind in KINDS}
