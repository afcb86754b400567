"""The example files of the documentation fit our charts, and the cluster by hand can be built."""

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
from lab.install import OPERATOR, SLURM, Release
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


def _template(nodeset: NodeSet, controller: Controller) -> nodesets.PodTemplate:
    return nodesets.template(
        nodeset, PodInputs(controller=controller, cluster_domain="cluster.local"), "hash"
    )
