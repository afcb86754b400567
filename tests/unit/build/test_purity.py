"""Builders give the same for the same, and change nothing they are given."""

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from coil.build import controller as controllers
from coil.build import nodeset as nodesets
from coil.build import restapi as restapis
from coil.build.defaults import with_server_defaults
from coil.build.hashes import PodHashes
from coil.build.patch import merge_patch
from coil.build.slurmconf import ConfigInputs
from coil.build.worker import PodInputs
from coil.support.objects import JsonObject, ObjectKey
from tests.support.resources import accounting, controller, nodeset, restapi

POD = {
    "spec": {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}},
        "volumes": [{"name": "x", "emptyDir": {}}],
        "containers": [{"name": "side"}],
        "initContainers": [{"name": "prepare"}],
    },
    "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
}
CONTAINER = {
    "args": ["-v"],
    "env": [{"name": "TZ", "value": "UTC"}],
    "livenessProbe": {"periodSeconds": 3},
    "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
}
SERVICE = {"spec": {"ports": [{"name": "x", "port": 1}], "selector": {"s": "t"}, "type": "LoadBalancer"}}
CLUSTER = controller(
    template=POD,
    slurmctld=CONTAINER,
    service=SERVICE,
    inplaceReconfigure=True,
    configFileRefs=[{"name": "site"}],
    metrics={"enabled": True, "serviceMonitor": {"enabled": True}},
)
INPUTS = ConfigInputs(
    nodesets=[nodeset("b"), nodeset("a")], accounting=accounting(), config_maps={"site": {"gres.conf": ""}}
)
WORKERS = nodeset(
    template=POD,
    slurmd=CONTAINER,
    ssh={"enabled": True, "sssdConfRef": {"name": "s", "key": "k"}},
    volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {}}],
)
REST = restapi(template=POD, slurmrestd=CONTAINER, service=SERVICE)


def _stamp() -> JsonObject:
    template = nodesets.template(WORKERS, PodInputs(controller=CLUSTER), "hash")
    return nodesets.stamp_ordinal(template, 1, node="kn-1")


BUILDERS: dict[str, Callable[[], Any]] = {
    "service": lambda: controllers.service(CLUSTER),
    "internal service": lambda: controllers.internal_service(CLUSTER),
    "config map": lambda: controllers.config_map(CLUSTER, INPUTS),
    "stateful set": lambda: controllers.stateful_set(CLUSTER, PodHashes()),
    "service monitor": lambda: controllers.service_monitor(CLUSTER),
    "rest service": lambda: restapis.service(REST),
    "deployment": lambda: restapis.deployment(REST, CLUSTER),
    "worker service": lambda: nodesets.worker_service(ObjectKey("ns", "slurm"), INPUTS.nodesets),
    "worker budget": lambda: nodesets.worker_budget(ObjectKey("ns", "slurm"), INPUTS.nodesets),
    "ssh config": lambda: nodesets.ssh_config(WORKERS),
    "revision": lambda: nodesets.controller_revision(WORKERS, number=1),
    "pod": _stamp,
}


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS.keys())
def test_a_builder_gives_the_same_again_and_changes_no_input(build: Callable[[], Any]) -> None:
    inputs = (CLUSTER, INPUTS, WORKERS, REST)
    before = [msgspec.json.encode(value) for value in inputs]
    first = msgspec.json.encode(build())
    assert msgspec.json.encode(build()) == first
    assert [msgspec.json.encode(value) for value in inputs] == before


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS.keys())
def test_completing_and_comparing_change_no_manifest(build: Callable[[], Any]) -> None:
    manifest = build()
    before = copy.deepcopy(manifest)
    live = with_server_defaults(manifest)
    assert manifest == before
    if manifest["kind"] not in {"Pod", "ControllerRevision"}:
        live_before = copy.deepcopy(live)
        assert merge_patch(live, manifest) == {}
        assert (live, manifest) == (live_before, before)


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS.keys())
def test_completing_twice_is_completing_once(build: Callable[[], Any]) -> None:
    once = with_server_defaults(build())
    assert with_server_defaults(once) == once
