"""The whole manager over the NodeSets of the golden corpus, step by step: status, pods, claims, events.

Conditions as in `tests/data/golden/README.md`: no scheduler, no kubelet, no Slurm. Members of objects are
compared in `tests/golden`; here it is who is there, and what is told.
"""

import json
from typing import Any

import pytest

from lab.apiserver import ApiServer
from tests.support import golden
from tests.support.apiserver import kubectl
from tests.support.manager import Manager, Namespace, eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(180)]

CASES = [
    "nodeset-claims",
    "nodeset-minimal",
    "nodeset-naming",
    "nodeset-oversubscribe",
    "nodeset-rollout",
    "nodeset-ssh",
]
"""The others need Kubernetes nodes without the taints that a new node has."""
OWN_CONDITIONS = {"SlurmReachable", "Reconciled"}


def apply(server: ApiServer, space: Namespace, step: golden.Step) -> None:
    """Apply the documents of one step in the order of the corpus."""
    for (kind, _), document in step.inputs.items():
        if kind not in ("Namespace", "Node"):
            metadata = {name: value for name, value in document["metadata"].items() if name != "uid"}
            text = json.dumps({**document, "metadata": {**metadata, "namespace": space.name}})
            kubectl(server, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)


def nodesets(step: golden.Step) -> dict[str, dict[str, Any]]:
    """Status of each NodeSet in the corpus."""
    return {
        name: found["status"]
        for (kind, name), found in step.custom_resources.items()
        if kind == "NodeSet" and found["status"]
    }


def shown(space: Namespace, name: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """The live status without what coil adds, and with a generation that other tools do not count."""
    status = dict((space.get("nodeset", name) or {}).get("status", {}))
    conditions = status.pop("conditions", [])
    assert {condition["type"] for condition in conditions} <= OWN_CONDITIONS
    return status | {"observedGeneration": wanted["observedGeneration"]}


def listed(space: Namespace, kind: str) -> set[str]:
    return {item["metadata"]["name"] for item in space.objects(kind)}


def check(space: Namespace, step: golden.Step) -> None:
    """Wait until the NodeSets are as in the corpus."""
    for name, wanted in nodesets(step).items():
        eventually(
            lambda name=name, wanted=wanted: shown(space, name, wanted) == wanted,
            within=40,
            what=f"status of {name} is {wanted}, not {shown(space, name, wanted)}",
        )
    pods = {name for kind, name in step.outputs if kind == "Pod"}
    assert {pod for pod in listed(space, "pods") if "controller" not in pod} == pods


@pytest.mark.parametrize("case", CASES)
def test_nodesets_of_the_corpus(managed_server: ApiServer, case: str) -> None:
    steps = golden.steps(case)
    space = Namespace(managed_server, steps[0].namespace)
    with Manager(managed_server, namespaces=[space.name]) as manager:
        for step in steps:
            apply(managed_server, space, step)
            check(space, step)
        claims = {name for kind, name in steps[-1].outputs if kind == "PersistentVolumeClaim"}
        assert listed(space, "persistentvolumeclaims") <= claims
        assert not [entry for entry in manager.entries() if entry["level"] == "error"]
