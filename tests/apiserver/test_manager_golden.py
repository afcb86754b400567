"""The whole manager over the inputs of the golden corpus, all cases at once.

Conditions as in `tests/data/golden/README.md`: no scheduler, no kubelet.
"""

import json
from collections.abc import Iterable, Iterator

import msgspec
import pytest

from coil.api import keys
from coil.kinds.children import Leave, decide
from coil.kube.views import ManifestView
from coil.support.objects import JsonObject
from lab.apiserver import ApiServer
from tests.support import golden
from tests.support.apiserver import kubectl
from tests.support.built import Objects, manifests
from tests.support.manager import Manager, Namespace, eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(180)]

CASES = [case for case in golden.cases() if case.startswith(("controller-", "restapi-"))]
CHILDREN = {"StatefulSet", "Deployment", "Service", "ConfigMap"}


def first_step(case: str) -> golden.Step:
    return golden.steps(case)[0]


@pytest.fixture(scope="module")
def spaces(managed_server: ApiServer) -> Iterator[dict[str, Namespace]]:
    """The first step of every case, applied and reconciled."""
    found = {case: Namespace(managed_server, first_step(case).namespace) for case in CASES}
    namespaces = [space.name for space in found.values()]
    with Manager(managed_server, "--controller-workers=4", namespaces=namespaces) as manager:
        for case, space in found.items():
            create(managed_server, space, first_step(case))
        for case, space in found.items():
            for kind, name in first_step(case).custom_resources:
                if kind in ("Controller", "RestApi"):
                    space.wait_condition(kind.lower(), name, "Reconciled=True", within=60)
        yield found
        assert not [entry for entry in manager.entries() if entry["level"] == "error"]


def create(server: ApiServer, space: Namespace, step: golden.Step) -> None:
    """Create the input as the corpus was made: in its order, without an annotation of kubectl."""
    skipped = {"Namespace", "Node"}
    for (kind, _), document in step.inputs.items():
        if kind not in skipped:
            metadata = {name: value for name, value in document["metadata"].items() if name != "uid"}
            text = json.dumps({**document, "metadata": {**metadata, "namespace": space.name}})
            kubectl(server, "create", "-f", "-", stdin=text)


def children(manifests: Iterable[JsonObject]) -> Objects:
    """Those that a Controller or RestApi owns, by kind and name."""
    found: Objects = {}
    for item in manifests:
        owners = {owner["kind"] for owner in item["metadata"].get("ownerReferences", [])}
        if item["kind"] in CHILDREN and owners & {"Controller", "RestApi"}:
            found[item["kind"], item["metadata"]["name"]] = item
    return found


@pytest.mark.parametrize("case", CASES)
def test_every_child_is_there_and_as_built_and_nothing_else(spaces: dict[str, Namespace], case: str) -> None:
    """What is built equals the corpus but for listed deviations: see tests/golden."""
    wanted = children(manifests(first_step(case)).values())
    live = children(spaces[case].objects("statefulsets,deployments,services,configmaps"))
    assert live.keys() == wanted.keys()
    for key, manifest in wanted.items():
        owners = live[key]["metadata"]["ownerReferences"]
        named = {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": owners}}
        assert decide(msgspec.convert(live[key], ManifestView), named) == Leave()


@pytest.mark.parametrize("case", CASES)
def test_pod_0_of_each_slurmctld_is_the_active_one(spaces: dict[str, Namespace], case: str) -> None:
    space = spaces[case]
    for kind, name in children(space.objects("statefulsets")):
        assert kind == "StatefulSet"

        def active(pod: str = f"{name}-0") -> bool:
            found = space.get("pod", pod) or {"metadata": {}}
            return found["metadata"].get("labels", {}).get(keys.LABEL_ACTIVE) == "true"

        eventually(active, what=f"pod 0 of {name} is labelled")
