"""The example files of the documentation fit our charts, and the cluster by hand can be built."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from coil.api.controller import Controller
from coil.api.kinds import KINDS
from coil.api.nodeset import NodeSet
from coil.api.restapi import RestApi
from coil.build import controller as controllers
from coil.build import nodeset as nodesets
from coil.build import restapi as restapis
from coil.build.hashes import PodHashes
from coil.build.worker import PodInputs
from coil.support.objects import JsonObject
from lab.install import OPERATOR, SLURM, Release
from tests.support import samples
from tests.support.charts import template

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.mark.parametrize(
    ("release", "example"), [(OPERATOR, "operator-values.yaml"), (SLURM, "slurm-values.yaml")]
)
def test_values_of_somebodys_cluster_name_all_images(release: Release, example: str) -> None:
    """With the example over the lab's values nothing points to an image that only the lab has."""
    files = [*release.values, EXAMPLES / example]
    rendered = template(release.name, *(word for file in files for word in ("--values", str(file))))
    assert "registry.example/coil" in str(rendered)
    assert "coil.local" not in str(rendered)


def test_the_cluster_by_hand_can_be_built() -> None:
    views = {kind.kind: kind.view for kind in KINDS}
    documents = yaml.safe_load_all((EXAMPLES / "cluster.yaml").read_text())
    made: dict[str, Any] = {each["kind"]: msgspec.convert(each, views[each["kind"]]) for each in documents}
    controller, restapi, nodeset = (made[name] for name in ("Controller", "RestApi", "NodeSet"))
    assert isinstance(controller, Controller)
    assert isinstance(restapi, RestApi)
    assert isinstance(nodeset, NodeSet)
    pods = [
        controllers.stateful_set(controller, PodHashes()),
        restapis.deployment(restapi, controller),
        nodesets.stamp_ordinal(_template(nodeset, controller), 0),
    ]
    assert all("registry.example/coil/" in str(pod) for pod in pods)


def test_annotations_for_multus_and_a_scheduler_reach_the_workers() -> None:
    pods = {file.stem: _worker(file) for file in samples.FILES if file.stem in {"multus", "volcano"}}
    networks = pods["multus"]["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"]
    assert json.loads(networks) == [{"name": "fabric", "interface": "net1"}]
    assert pods["volcano"]["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] == "slurm"
    assert pods["volcano"]["spec"]["schedulerName"] == "volcano"


def _worker(file: Path) -> JsonObject:
    (pod,) = samples.worker_pods(samples.step(samples.rendered(file)))
    return pod


def test_every_sample_is_in_the_documentation() -> None:
    text = (EXAMPLES.parent / "charts.md").read_text()
    assert [file.name for file in samples.FILES if f"`{file.name}`" not in text] == []


def _template(nodeset: NodeSet, controller: Controller) -> nodesets.PodTemplate:
    return nodesets.template(
        nodeset, PodInputs(controller=controller, cluster_domain="cluster.local"), "hash"
    )
