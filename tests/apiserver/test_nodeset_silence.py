"""slurmrestd answers badly: nothing is deleted, no drain undone, and the NodeSet says so (I2, I3, I6)."""

import asyncio
import time

import pytest

from lab.apiserver import ApiServer
from tests.support import slurm
from tests.support.apiserver import kubectl
from tests.support.moody import MOODS, MoodyProxy
from tests.support.nodeset_stage import Stage, settle, staged

pytestmark = [pytest.mark.apiserver, pytest.mark.slurm, pytest.mark.asyncio, pytest.mark.timeout(400)]

WORKERS = 4


async def test_no_mood_of_slurmrestd_costs_a_worker(
    managed_server: ApiServer, slurm_cluster: slurm.SlurmCluster
) -> None:
    """With one node drained by an admin, and one by us because its machine is cordoned."""
    proxy = MoodyProxy(slurm_cluster.base_url)
    async with proxy.running(), staged(managed_server, slurm_cluster, proxy.url) as stage:
        await settle(stage, WORKERS)
        await stage.scontrol("update", "nodename=gpu-0", "state=drain", "reason=bad fan")
        await machine(stage, "cordon")
        await stage.eventually(lambda: is_drained(stage), what="the node of the cordoned machine is drained")
        for mood in MOODS:
            await suffer(stage, proxy, mood)


async def suffer(stage: Stage, proxy: MoodyProxy, mood: str) -> None:
    """Wish for fewer workers and an undrain while slurmrestd is in that mood; then all is well again."""
    before = set(await stage.pods())
    proxy.mood, began = mood, time.monotonic()
    said = await stage.eventually(lambda: unreachable(stage), within=80, what=f"{mood}: the NodeSet says so")
    after = time.monotonic() - began
    await machine(stage, "uncordon")
    await stage.scale(1)
    await asyncio.sleep(4)  # several passes
    pods = await stage.pods()
    assert set(pods) == before, mood
    assert not [name for name, pod in pods.items() if "deletionTimestamp" in pod["metadata"]], mood
    assert "Reason=bad fan" in await stage.call(stage.cluster.node_line, "gpu-0"), mood
    assert await is_drained(stage), mood
    still = await unreachable(stage)
    assert still["lastTransitionTime"] == said["lastTransitionTime"], mood
    await machine(stage, "cordon")
    await stage.scale(WORKERS)
    proxy.mood, healed = "", time.monotonic()
    await stage.eventually(lambda: steady(stage), within=60, what=f"{mood}: all is well again")
    seconds = time.monotonic() - healed
    told = f"{mood}: told after {after:.1f} s as {said['reason']}, steady {seconds:.1f} s after its end"
    print(told)  # noqa: T201 -- figures for the docs


async def machine(stage: Stage, verb: str) -> None:
    """Cordon or uncordon the Kubernetes node of gpu-1."""
    await stage.call(kubectl, stage.server, verb, f"{stage.space.name}-1")


async def is_drained(stage: Stage) -> bool:
    line = await stage.call(stage.cluster.node_line, "gpu-1")
    return "DRAIN" in line and "slurm-operator: Node" in line


async def conditions(stage: Stage) -> dict[str, dict[str, str]]:
    return {each["type"]: each for each in (await stage.status()).get("conditions", [])}


async def unreachable(stage: Stage) -> dict[str, str]:
    told = (await conditions(stage))["SlurmReachable"]
    return told if told["status"] == "False" else {}


async def steady(stage: Stage) -> bool:
    told = await conditions(stage)
    return all(told[kind]["status"] == "True" for kind in ("SlurmReachable", "Reconciled"))
