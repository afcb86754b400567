"""Claims about what a NodeSet knows of Slurm between the operator's start and Slurm's first answer."""

import asyncio

import pytest

from coil.kinds.nodeset.memory import Memory
from coil.kinds.nodeset.observe import Observer
from coil.kinds.nodeset.snapshot import Slurm, Unknown
from coil.kinds.patience import PATIENCE_S
from coil.kinds.resources import NODESETS
from coil.support.objects import ObjectKey
from tests.support.runtime import offline_runtime, put

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]

SPEC = {"controllerRef": {"name": "alba"}, "slurmd": {"image": "registry.example/slurmd:1"}}


def reason(slurm: Slurm) -> tuple[str, bool]:
    assert isinstance(slurm, Unknown)
    return slurm.reason, slurm.not_yet


async def test_no_client_is_an_outage_only_after_some_seconds_and_a_new_one_is_none() -> None:
    runtime = offline_runtime()
    observer = Observer(runtime, Memory())
    nodeset = put(runtime, NODESETS, "gpu", spec=SPEC)
    assert reason(observer.observe(nodeset).snapshot.slurm) == ("NotAskedYet", True)
    await asyncio.sleep(PATIENCE_S)
    assert reason(observer.observe(nodeset).snapshot.slurm) == ("NoRestApi", False)
    runtime.clusters.put(ObjectKey("ns", "alba"), "http://192.0.2.1:6820", b"key", "ns_alba")
    assert reason(observer.observe(nodeset).snapshot.slurm) == ("NotAskedYet", True)
