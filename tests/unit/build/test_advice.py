"""What users are told about objects that hardly do what was meant."""

import pytest

from coil.build.advice import controller_advice, nodeset_advice
from coil.build.slurmconf import ConfigInputs
from coil.support.objects import JsonObject
from tests.support.resources import controller, nodeset


def _advice(files: dict[str, str], *nodesets: JsonObject, **spec: object) -> list[str]:
    inputs = ConfigInputs(
        config_maps={"site": files},
        nodesets=[nodeset(f"set-{index}", **item) for index, item in enumerate(nodesets)],
    )
    return controller_advice(controller(configFileRefs=[{"name": "site"}], **spec), inputs)


def test_ordinary_objects_need_no_advice() -> None:
    assert _advice({}, {}) == []
    assert nodeset_advice(nodeset()) == []


def test_devices_that_no_node_declares() -> None:
    """Field case CFG-13: gres.conf alone gives a node no device."""
    files = {"gres.conf": "# Name=nic\nNodeName=a Name=gpu Type=h100 File=/dev/nvidia[0-7]\n"}
    (text,) = _advice(files, {}, {"extraConf": "Gres=gpu:h100:8"})
    assert text.startswith("NodeSet set-0: gres.conf declares gpu,")
    assert "Gres=gpu:1" in text


def test_a_topology_file_without_its_plugin() -> None:
    """Field case CFG-18."""
    files = {"topology.conf": "SwitchName=s1 Nodes=alpha-[0-3]"}
    (text,) = _advice(files)
    assert "add TopologyPlugin=topology/tree to spec.extraConf" in text
    assert _advice(files, extraConf="topologyplugin = topology/tree") == []
    assert _advice({"topology.yaml": "- topology: a"}) == []


@pytest.mark.parametrize("file", ["topology.conf", "topology.yaml"])
def test_switch_names_that_end_in_a_long_number(file: str) -> None:
    """Field case CFG-16."""
    name = "fab-10000000000000000000001"
    (text,) = _advice({file: f"SwitchName={name} Nodes=a"}, extraConf="TopologyPlugin=topology/tree")
    assert name in text
    assert _advice({file: "SwitchName=fab-1000000001"}, extraConf="TopologyPlugin=x") == []


def test_zero_values_that_override_nothing() -> None:
    container = {
        "securityContext": {"runAsUser": 0, "runAsNonRoot": False, "privileged": True},
        "stdin": False,
    }
    pod = {"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False}
    assert _advice({}, slurmctld=container, template={"spec": pod}) == [
        "spec.slurmctld.securityContext.runAsUser: 0 has no effect, a zero value overrides nothing",
        "spec.slurmctld.securityContext.runAsNonRoot: false has no effect, a zero value overrides nothing",
        "spec.template.spec.terminationGracePeriodSeconds: 0 has no effect, a zero value overrides nothing",
    ]


def test_a_volume_in_the_place_of_the_operators() -> None:
    """Field case OVR-09: the user's mount wins, and is told what that means."""
    mount = {"name": "mine", "mountPath": "/etc/slurm"}
    (text,) = nodeset_advice(nodeset(slurmd={"volumeMounts": [mount]}))
    assert text.startswith("spec.slurmd.volumeMounts: /etc/slurm is mounted by the operator; volume mine")


def test_external_addresses_are_said_to_be_ignored() -> None:
    """Field case INJ-04."""
    (text,) = _advice({}, service={"spec": {"externalIPs": ["192.0.2.53"]}})
    assert text.startswith("spec.service.spec.externalIPs: is ignored")


def test_a_nodeset_that_is_left_out_of_the_configuration() -> None:
    """Field case INJ-01, told on both objects."""
    bad = {"partition": {"enabled": True, "config": "State=UP\nProlog=x"}}
    assert _advice({}, bad)[0].startswith("NodeSet set-0: spec.partition.config")
    assert nodeset_advice(nodeset(**bad))[0].startswith("spec.partition.config")


def test_text_without_values_and_host_networks() -> None:
    """Field cases CFG-20 and REG-13."""
    texts = nodeset_advice(nodeset(extraConf="Weight=5 spare", template={"spec": {"hostNetwork": True}}))
    assert texts[0].startswith("spec.extraConf: 'spare' is not of the form Key=Value")
    assert texts[1].startswith("spec.template.spec.hostNetwork: slurmd registers under the name")


@pytest.mark.parametrize(
    ("metrics", "extra", "told"),
    [
        (True, "PrivateData=jobs,usage", True),
        (True, "PrivateData=none", False),
        (True, "", False),
        (False, "PrivateData=jobs", False),
    ],
)
def test_private_data_and_metrics(extra: str, *, metrics: bool, told: bool) -> None:
    """Field case MON-03."""
    texts = _advice({}, metrics={"enabled": metrics}, extraConf=extra)
    assert [text.startswith("spec.metrics.enabled: slurmctld serves no metrics") for text in texts] == [
        True
    ] * told
