"""The values files in charts/slurm/samples: what the chart renders and what the operator builds of them."""

from collections.abc import Iterator
from pathlib import Path

from coil.api.controller import Controller
from coil.api.nodeset import NodeSet
from coil.build import nodeset as nodesets
from coil.build.worker import PodInputs
from coil.support.objects import JsonObject
from tests.support import golden
from tests.support.charts import CHARTS, Document, template

FILES = sorted((CHARTS / "slurm" / "samples").iterdir())


def rendered(file: Path, namespace: str = "ns") -> list[Document]:
    """The objects of the chart with the values of a sample."""
    return template("slurm", "--values", str(file), namespace=namespace)


def step(documents: list[Document], namespace: str = "ns") -> golden.Step:
    """Rendered objects as the API server would give them to the operator."""
    inputs: dict[tuple[str, str], JsonObject] = {("Namespace", namespace): {"metadata": {}}}
    for document in documents:
        metadata = {**document["metadata"], "uid": golden.UID}
        inputs[document["kind"], metadata["name"]] = {**document, "metadata": metadata}
    return golden.Step("sample", 1, inputs, {}, {})


def worker_pods(stored: golden.Step) -> Iterator[JsonObject]:
    """One pod of each NodeSet."""
    (controller,) = stored.all(Controller)
    for nodeset in stored.all(NodeSet):
        made = nodesets.template(nodeset, PodInputs(controller=controller), "hash")
        daemons = nodeset.spec.scaling_mode == "DaemonSet"
        yield nodesets.stamp_node(made, "one", "one") if daemons else nodesets.stamp_ordinal(made, 0)
