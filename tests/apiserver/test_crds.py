"""The real API server takes the CRDs, and refuses what it has to (spec: control-plane 22)."""

import json
import subprocess
from typing import Any

import pytest

from coil.api import crd
from coil.api.kinds import KINDS
from coil.api.meta import GROUP, VERSION
from coil.kube.client import Client
from coil.kube.config import load
from coil.service.definitions import dropped_of
from lab.apiserver import ApiServer
from tests.support.apiserver import kubectl

pytestmark = pytest.mark.apiserver

KEYS: dict[str, Any] = {
    "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
    "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
}
SSSD = {"name": "sssd", "key": "sssd.conf"}
REF = {"controllerRef": {"name": "c"}}
EXTERNAL = {"external": True, "externalConfig": {"host": "h", "port": 6817}}
HA = {"enabled": True}


@pytest.fixture(scope="module")
def server(api_server: ApiServer) -> ApiServer:
    """The API server with the CRDs, once each of them is established."""
    kubectl(api_server, "apply", "-f", "-", stdin=crd.to_yaml(crd.all_definitions().values()))
    names = [f"crd/{kind.crd_name}" for kind in KINDS]
    kubectl(api_server, "wait", "--for=condition=Established", "--timeout=30s", *names)
    return api_server


def create(server: ApiServer, namespace: str, kind: str, spec: Any, name: str = "c") -> dict[str, Any]:
    """Create an object; return it as stored."""
    body = {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
    return json.loads(kubectl(server, "create", "-o", "json", "-f", "-", stdin=json.dumps(body)))


def refusal(server: ApiServer, namespace: str, kind: str, spec: Any) -> str:
    """What the API server says against an object."""
    with pytest.raises(subprocess.CalledProcessError) as caught:
        create(server, namespace, kind, spec)
    return str(caught.value.stderr)


def test_no_definition_violates_the_structural_schema_rules(server: ApiServer) -> None:
    listed = json.loads(kubectl(server, "get", "crds", "-o", "json"))["items"]
    assert {item["spec"]["names"]["kind"] for item in listed} >= {kind.kind for kind in KINDS}
    for item in listed:
        states = {condition["type"]: condition["status"] for condition in item["status"]["conditions"]}
        assert states.get("NamesAccepted") == states.get("Established") == "True"
        assert states.get("NonStructuralSchema", "False") == "False"


def test_a_controller_without_keys_gets_two_violations(server: ApiServer, namespace: str) -> None:
    """Field case SEC-09: only a slurmctld of ours needs keys."""
    said = refusal(server, namespace, "Controller", {})
    assert "slurmKeyRef is required unless external is true" in said
    assert "jwtKeyRef is required unless external is true" in said


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"external": True}, "externalConfig is required when external is true"),
        ({"external": True, "externalConfig": {"host": "h"}}, "spec.externalConfig.port: Required value"),
        ({**KEYS, "ha": {"enabled": False, "backups": 0}}, "should be greater than or equal to 1"),
        ({**KEYS, "ha": HA}, "ha.enabled needs persistence.enabled and persistence.existingClaim"),
        ({**KEYS, "ha": HA, "persistence": {}}, "no such key: existingClaim"),
        ({**KEYS, "ha": HA, "persistence": {"existingClaim": ""}}, "ha.enabled needs persistence"),
        ({**KEYS, "ha": HA, "persistence": {"enabled": False, "existingClaim": "x"}}, "ha.enabled needs"),
        ({**KEYS, "slurmctld": "image:1"}, "must be of type object"),
        ({**KEYS, "metrics": {"serviceMonitor": {"interval": "30 s"}}}, "should match"),
        ({**KEYS, "persistence": {"resources": {"requests": {"storage": "4 GB"}}}}, "should match"),
    ],
)
def test_controllers_that_are_refused(server: ApiServer, namespace: str, spec: Any, said: str) -> None:
    assert said in refusal(server, namespace, "Controller", spec)


@pytest.mark.parametrize(
    "spec",
    [
        KEYS,
        EXTERNAL,
        {**KEYS, "ha": HA, "persistence": {"existingClaim": "state"}},
        {"slurmKeyRef": KEYS["slurmKeyRef"], "jwtHs256KeyRef": KEYS["jwtKeyRef"]},
        {**KEYS, "persistence": {"resources": {"requests": {"storage": "4Gi", "other": 3}}}},
        {**KEYS, "configFileRefs": None, "template": {"metadata": {"labels": None}}},
    ],
)
def test_controllers_that_are_accepted(server: ApiServer, namespace: str, spec: Any) -> None:
    create(server, namespace, "Controller", spec)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "spec.controllerRef: Required value"),
        ({**REF, "scalingMode": "Deployment"}, 'supported values: "DaemonSet", "StatefulSet"'),
        ({**REF, "updateStrategy": {"type": "Recreate"}}, "Unsupported value"),
        ({**REF, "updateStrategy": {"type": "ScheduledUpdate"}}, "no such key: scheduledUpdate"),
        (
            {**REF, "updateStrategy": {"type": "ScheduledUpdate", "scheduledUpdate": {}}},
            "needs scheduledUpdate",
        ),
        ({**REF, "partition": {"enabled": True, "config": "A=1\nB=2"}}, "should match"),
        ({**REF, "ssh": {"enabled": True}}, "spec.ssh.sssdConfRef: Required value"),
        ({**REF, "ssh": {"enabled": True, "sssdConfRef": {"name": "x"}}}, "sssdConfRef.key: Required value"),
        ({**REF, "replicas": 2**31}, "int32"),
    ],
)
def test_nodesets_that_are_refused(server: ApiServer, namespace: str, spec: Any, said: str) -> None:
    assert said in refusal(server, namespace, "NodeSet", spec)


@pytest.mark.parametrize(
    ("kind", "spec", "said"),
    [
        ("Token", {"username": "u"}, "jwtKeyRef is required"),
        ("Token", {"jwtKeyRef": KEYS["jwtKeyRef"]}, "spec.username: Required value"),
        ("LoginSet", REF, "spec.sssdConfRef: Required value"),
        ("RestApi", {}, "spec.controllerRef: Required value"),
        ("Accounting", {}, "slurmKeyRef is required"),
        ("Accounting", {**KEYS, "storageConfig": {"host": "h"}}, "passwordKeyRef: Required value"),
    ],
)
def test_others_that_are_refused(server: ApiServer, namespace: str, kind: str, spec: Any, said: str) -> None:
    assert said in refusal(server, namespace, kind, spec)


def test_defaults_are_written_by_the_server(server: ApiServer, namespace: str) -> None:
    stored = create(server, namespace, "NodeSet", {**REF, "updateStrategy": {"rollingUpdate": {}}})["spec"]
    assert stored == {
        **REF,
        "ordinalPadding": 0,
        "oversubscribeNode": False,
        "pinToNode": False,
        "pruneSlurmNodeRecords": "Never",
        "replicas": 1,
        "revisionHistoryLimit": 0,
        "scalingMode": "StatefulSet",
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": "25%"}, "type": "RollingUpdate"},
        "workloadDisruptionProtection": True,
    }


def test_unknown_members_of_containers_stay_and_others_go(server: ApiServer, namespace: str) -> None:
    spec = {**REF, "slurmd": {"image": "i", "future": {"x": [1]}}}
    body = {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "NodeSet",
        "metadata": {"name": "n", "namespace": namespace},
        "spec": {**spec, "unheardOf": 1},
    }
    text = kubectl(server, "create", "--validate=false", "-o", "json", "-f", "-", stdin=json.dumps(body))
    stored = json.loads(text)["spec"]
    assert stored["slurmd"] == spec["slurmd"]
    assert "unheardOf" not in stored


@pytest.mark.parametrize(("kind", "spec"), [("NodeSet", REF), ("LoginSet", {**REF, "sssdConfRef": SSSD})])
def test_scale_subresource(server: ApiServer, namespace: str, kind: str, spec: Any) -> None:
    create(server, namespace, kind, spec)
    kubectl(server, "scale", f"{kind.lower()}/c", "--replicas=3", "-n", namespace)
    got = kubectl(server, "get", kind.lower(), "c", "-n", namespace, "-o", "jsonpath={.spec.replicas}")
    assert got == "3"


def test_a_plain_update_does_not_change_status(server: ApiServer, namespace: str) -> None:
    create(server, namespace, "NodeSet", REF)
    patch = '{"status":{"selector":"a=b","nodeSetHash":"h","replicas":7}}'
    arguments = ("patch", "nodeset", "c", "-n", namespace, "--type=merge", "-p", patch, "-o", "json")
    assert "status" not in json.loads(kubectl(server, *arguments))
    written = json.loads(kubectl(server, *arguments, "--subresource=status"))
    assert written["status"]["replicas"] == 7


def test_short_names_and_columns(server: ApiServer, namespace: str) -> None:
    create(server, namespace, "NodeSet", REF)
    shown = kubectl(server, "get", "nss", "-n", namespace).splitlines()[0].split()
    assert shown == ["NAME", "DESIRED", "REPLICAS", "UPDATED", "READY", "AGE"]
    for short in [name for kind in KINDS for name in kind.short_names]:
        kubectl(server, "get", short, "-n", namespace)


@pytest.mark.asyncio
async def test_the_server_s_own_document_shows_what_an_older_crd_drops(server: ApiServer) -> None:
    """Field case HLM-10: what the operator compares with at its start."""
    async with Client(load(str(server.kubeconfig))) as client:
        served = await client.openapi(GROUP, VERSION)
    for kind in KINDS:
        assert dropped_of(kind, served) == []
    nodeset = next(kind for kind in KINDS if kind.kind == "NodeSet")
    schemas = served["components"]["schemas"]
    (mine,) = [schemas[name] for name in schemas if name.endswith(f"{VERSION}.NodeSet")]
    del mine["properties"]["spec"]["properties"]["updateStrategy"]
    assert dropped_of(nodeset, served) == ["spec.updateStrategy"]
