"""Cases from the field, HLM: what users' values did to the charts that ours replace."""

from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.charts import Document, RenderError, by_name, template


@pytest.fixture
def chart(tmp_path: Path) -> Any:
    """Renders the chart with values as a file has them."""

    def rendered(**values: Any) -> dict[str, Document]:
        file = tmp_path / "values.yaml"
        file.write_text(yaml.safe_dump(values))
        return by_name(template("slurm", f"--values={file}"))

    return rendered


@pytest.mark.parametrize(("named", "rendered"), [(None, None), ("", ""), ("-", ""), ("fast", "fast")])
def test_a_storage_class_is_absent_empty_or_named(
    chart: Any, named: str | None, rendered: str | None
) -> None:
    """HLM-02: a bare word broke the object; null, empty and a name are three things."""
    objects = chart(controller={"persistence": {"storageClassName": named}})
    assert objects["Controller/slurm"]["spec"]["persistence"].get("storageClassName") == rendered


@pytest.mark.parametrize(("switch", "on"), [(False, False), (None, False), (True, True)])
def test_a_vendor_switch_is_on_only_when_true(chart: Any, switch: bool | None, on: bool) -> None:
    """HLM-04: false turned it on."""
    objects = chart(vendor={"nvidia": {"dcgm": {"enabled": switch}}})
    assert ("ConfigMap/slurm-prolog-dcgm" in objects) is on


def test_a_switch_is_no_text(chart: Any) -> None:
    """HLM-04: a text is neither on nor off."""
    with pytest.raises(RenderError, match="/vendor/nvidia/dcgm/enabled"):
        chart(vendor={"nvidia": {"dcgm": {"enabled": "false"}}})


@pytest.mark.parametrize(
    ("spec", "address"),
    [
        ({}, "{.spec.clusterIP}"),
        ({"type": "NodePort"}, "{.spec.clusterIP}"),
        ({"type": "LoadBalancer"}, "{.status.loadBalancer.ingress[0].ip}"),
        ({"type": "None"}, None),
    ],
    ids=str,
)
def test_the_notes_say_how_to_reach_the_daemons(chart: Any, spec: Document, address: str | None) -> None:
    """HLM-11: with the default values they said nothing."""
    notes = {
        "apiVersion": "v1",
        "kind": "Notes",
        "metadata": {"name": "notes"},
        "text": '{{ include "slurm/templates/NOTES.txt" . | b64enc }}',
    }
    values = {name: {"service": {"spec": spec}} for name in ("controller", "restapi")}
    text = b64decode(chart(extraObjects=[notes], **values)["Notes/notes"]["text"]).decode()
    for service in ("slurm-controller", "slurm-restapi"):
        shown = f"get service {service} -o jsonpath='{address}'"
        assert (shown in text) is (address is not None)
        assert (service in text) is (address is not None)


def test_texts_of_several_lines_keep_lines_and_braces(chart: Any) -> None:
    """HLM-17: they lost their indent or gained blank lines."""
    objects = chart(
        controller={"extraConf": "A=1\nB=2\n", "slurmctld": {"args": ["{{ .x }}"]}},
        accounting={"enabled": True, "extraConf": "C={{ .x }}\n\nD=4\n"},
        nodesets={"alpha": {"extraConf": "Weight=2"}},
    )
    assert objects["Controller/slurm"]["spec"]["extraConf"] == "A=1\nB=2"
    assert objects["Controller/slurm"]["spec"]["slurmctld"]["args"] == ["{{ .x }}"]
    assert objects["Accounting/slurm"]["spec"]["extraConf"] == "C={{ .x }}\n\nD=4"
    assert objects["NodeSet/slurm-worker-alpha"]["spec"]["extraConf"] == "Weight=2"


def test_zeros_and_semicolons_are_values(chart: Any) -> None:
    """HLM-20: a zero vanished, and a semicolon made two lines."""
    options = {"MinJobAge": 0, "MailDomain": "a.example.test", "LaunchParameters": "x;y", "Unset": None}
    accounting = {"enabled": True, "extraConfMap": {"CommitDelay": 0}}
    objects = chart(controller={"extraConfMap": options}, accounting=accounting)
    lines = objects["Controller/slurm"]["spec"]["extraConf"].splitlines()
    assert lines == ["LaunchParameters=x;y", "MailDomain=a.example.test", "MinJobAge=0"]
    assert objects["Accounting/slurm"]["spec"]["extraConf"] == "CommitDelay=0"


@pytest.mark.parametrize(
    ("given", "rendered"),
    [
        ({"rollingUpdate": {"maxUnavailable": "10%"}}, ("RollingUpdate", "10%")),
        ({"type": "OnDelete"}, ("OnDelete", "25%")),
        ({}, ("RollingUpdate", "25%")),
    ],
    ids=str,
)
def test_an_update_strategy_is_passed_through(chart: Any, given: Document, rendered: tuple[str, str]) -> None:
    """HLM-21: always 100%, so that every change stopped all workers."""
    objects = chart(nodesets={"alpha": {"updateStrategy": given}})
    strategy = objects["NodeSet/slurm-worker-alpha"]["spec"]["updateStrategy"]
    assert (strategy["type"], strategy["rollingUpdate"]["maxUnavailable"]) == rendered


def test_an_absent_default_is_not_an_empty_text(chart: Any) -> None:
    """Field case HLM-01: Helm 4 drops defaults of null, as Helm 3 does with what a user sets to null."""
    rendered = chart(
        nodesetDefaults={"minReadySeconds": None, "revisionHistoryLimit": None, "replicas": None},
        nodesets={"alpha": {}},
    )
    spec = next(item for name, item in rendered.items() if name.startswith("NodeSet/"))["spec"]
    assert {"minReadySeconds", "revisionHistoryLimit", "replicas"} & spec.keys() == set()
