"""Labels of the series: few, whatever the cluster's nodes are called."""

import pytest
from prometheus_client import REGISTRY

from coil.slurm.client import SlurmClient
from coil.slurm.metrics import call_name
from tests.support.slurmrest import OneToken, ScriptedWire


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("slurm/v0.0.45/nodes/", "nodes"),
        ("slurm/v0.0.45/node/gpu-001", "node"),
        ("slurm/v0.0.45/reservation", "reservation"),
        ("openapi/v3", "openapi"),
    ],
)
def test_a_call_is_named_without_what_it_is_about(path: str, name: str) -> None:
    assert call_name(path) == name


@pytest.mark.asyncio
async def test_each_request_is_counted_with_its_status() -> None:
    labels = {"method": "DELETE", "call": "node", "code": "200"}
    before = REGISTRY.get_sample_value("coil_slurm_requests_total", labels) or 0
    await SlurmClient("http://rest", OneToken(), ScriptedWire()).delete_node("n1")
    assert REGISTRY.get_sample_value("coil_slurm_requests_total", labels) == before + 1
