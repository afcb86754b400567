"""The values files that users start from: accepted by a real API server that refuses every unknown field.

The members that custom resources leave open, containers and pod specs, are judged as parts of a pod:
once as they are written, since the operator leaves out what Kubernetes does not know, and once as built.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CalledProcessError

import pytest

from coil.support.objects import JsonObject
from lab.apiserver import ApiServer
from tests.support import samples
from tests.support.apiserver import kubectl
from tests.support.built import manifests
from tests.support.charts import CHARTS, Document, template

pytestmark = pytest.mark.apiserver

CONTAINERS = {"slurmctld", "reconfigure", "logfile", "slurmrestd", "slurmdbd", "login", "initconf", "slurmd"}


def as_written(documents: list[Document]) -> Iterator[JsonObject]:
    """Pods of the containers and pod specs in the custom resources."""
    for document in documents:
        spec = document.get("spec", {})
        found = {name: spec[name] for name in CONTAINERS & spec.keys()}
        if found:
            pod = {name: value for name, value in spec["template"]["spec"].items() if name != "hostname"}
            pod["containers"] = [{"name": name, **container} for name, container in found.items()]
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": document["metadata"], "spec": pod}


@pytest.fixture(scope="module")
def kinds(api_server: ApiServer) -> ApiServer:
    """The API server with our kinds, and with what samples expect to be there."""
    folder = str(CHARTS / "slurm-operator-crds" / "templates")
    kubectl(api_server, "apply", "--server-side", "--force-conflicts", "-f", folder)
    kubectl(api_server, "wait", "--for=condition=Established", "--timeout=30s", "-f", folder)
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}}
    kubectl(api_server, "apply", "--filename=-", stdin=json.dumps({**runtime, "handler": "nvidia"}))
    return api_server


def accept(server: ApiServer, *wanted: JsonObject) -> None:
    """Have the server judge objects; of a List kubectl would judge itself."""
    text = "\n---\n".join(json.dumps(each) for each in wanted)
    kubectl(server, "create", "--dry-run=server", "--validate=strict", "--filename=-", stdin=text)


@pytest.mark.parametrize("file", samples.FILES, ids=lambda file: file.stem)
def test_what_a_sample_makes_is_accepted_strictly(kinds: ApiServer, namespace: str, file: Path) -> None:
    documents = samples.rendered(file, namespace)
    stored = samples.step(documents, namespace)
    built = [*manifests(stored).values(), *samples.worker_pods(stored)]
    accept(kinds, *documents, *as_written(documents), *built)


def test_an_unknown_member_of_a_container_is_not_accepted(kinds: ApiServer, namespace: str) -> None:
    """What the test above would say of a sample with a slip."""
    documents = template("slurm", "--set", "nodesets.a.slurmd.volumeMount=x", namespace=namespace)
    with pytest.raises(CalledProcessError) as caught:
        accept(kinds, *as_written(documents))
    assert 'strict decoding error: unknown field "spec.containers' in caught.value.stderr
