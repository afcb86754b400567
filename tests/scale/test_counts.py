"""What a NodeSet of a hundred workers costs, in requests: counts only, whatever the machine.

The same as `make bench-scale`, which has the sizes, the times and the budgets (docs/scale.md).
"""

import pytest

from benchmarks.scale.measuring import Phase
from benchmarks.scale.phases import Plan, Results, measure
from coil.kinds.nodeset.cordon import MANY
from coil.kinds.nodeset.starting import FEW
from lab import binaries
from tests.support import slurm

pytestmark = [pytest.mark.apiserver, pytest.mark.slurm, pytest.mark.asyncio, pytest.mark.timeout(300)]

COUNT = 100
POLLS = {"GET nodes/", "GET jobs/", "GET openapi/v3"}
"""Reads of all nodes and all jobs, about one of each a second: their number is that of the seconds."""


def slurm_writes(phase: Phase) -> dict[str, int]:
    """Calls to Slurm that are no poll; a read of a single node would be among them."""
    return {kind: count for kind, count in phase.slurm_calls.items() if kind not in POLLS}


async def test_a_hundred_workers_cost_few_requests() -> None:
    if reason := slurm.missing():
        pytest.skip(reason)
    if not all(binaries.COMPONENTS[name].built for name in ("etcd", "kubernetes", "kwok")):
        pytest.skip("a simulated cluster is not built: run `python -m lab build etcd kubernetes kwok`")
    plan = Plan(count=COUNT, steady_s=5, changes=0, roll=False, twice=False)
    check(await measure(plan, print))


def check(results: Results) -> None:
    """The budgets of docs/scale.md that can be counted."""
    created, settled, steady = (results.phase(name) for name in ("created", "settled", "steady"))
    half, none = results.phase("half"), results.phase("none")
    assert slurm_writes(created) == {}, "nothing is written into Slurm while workers are made"
    assert slurm_writes(settled) == {"POST node/NAME": COUNT}, "each node's comment once"
    assert settled.api["create pods"] == COUNT
    assert created.api.get("patch pods/status", 0) <= FEW, "pods show Slurm's states after the start"
    assert settled.api["patch pods/status"] <= COUNT + FEW
    assert settled.api.get("create events", 0) + settled.api.get("patch events", 0) <= 40
    assert (steady.api_writes, slurm_writes(steady)) == (0, {}), "nothing changed, nothing is written"
    assert steady.slurm_received < 100_000, "unchanged tables are not read again"
    assert slurm_writes(half) == {"POST nodes/": 1}, "all are drained by one call"
    assert half.api["delete pods"] == COUNT // 2
    assert half.api.get("patch pods", 0) <= MANY, "those that leave at once are not written about"
    assert half.api.get("patch pods/status", 0) == 0, "nor is what Slurm says of them"
    assert none.api["delete pods"] == COUNT // 2
    assert all(phase.pod_lists == 0 for phase in results.phases), "the watch tells everything"
