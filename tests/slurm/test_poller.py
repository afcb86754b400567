"""The shared view against real daemons that stop, hang, lose their state and run jobs."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from coil.slurm.clusters import Cluster, Clusters
from coil.slurm.errors import ControllerDown, SlurmError, Unreachable
from coil.support.objects import ObjectKey
from coil.support.tasks import Tasks
from tests.support.slurm import SlurmCluster

pytestmark = [pytest.mark.slurm, pytest.mark.asyncio]

KEY = ObjectKey("ns", "slurm")


@pytest_asyncio.fixture
async def watched(cluster: SlurmCluster) -> AsyncIterator[Cluster]:
    """A cluster of 20 nodes with its running poller and a first view."""
    cluster.create_nodes("sim-[01-20]")
    async with Tasks() as tasks:
        clusters = Clusters(tasks)
        registered = clusters.put(KEY, cluster.base_url, cluster.jwt_key)
        await registered.poller.refresh()
        yield registered


async def eventually(condition: Callable[[], bool], within: float) -> None:
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 -- what happens in other processes sets no event
            await asyncio.sleep(0.02)


async def test_a_change_in_slurm_is_told_within_two_seconds(cluster: SlurmCluster, watched: Cluster) -> None:
    told: list[frozenset[str]] = []
    watched.poller.on_change(told.append)
    cluster.run("scontrol", "update", "nodename=sim-[03-04]", "state=drain", "reason=bad fan")
    await eventually(lambda: bool(told), 2)
    assert told[0] == {"sim-03", "sim-04"}
    view = watched.poller.view
    assert view
    assert {name for name, node in view.nodes.items() if not node.ours} == {"sim-03", "sim-04"}


async def test_a_write_is_seen_by_the_next_refresh(watched: Cluster) -> None:
    for turn in range(5):
        await watched.client.drain(["sim-07"], f"slurm-operator: {turn}")
        view = await watched.poller.refresh()
        assert (view.nodes["sim-07"].reason, view.idle_and_drained("sim-07")) == (
            f"slurm-operator: {turn}",
            True,
        )
        await watched.client.undrain(["sim-07"])
        assert not (await watched.poller.refresh()).idle_and_drained("sim-07")


async def test_a_stopped_slurmrestd_leaves_the_last_view(cluster: SlurmCluster, watched: Cluster) -> None:
    before = watched.poller.view
    assert cluster.rest
    cluster.rest.stop()
    with pytest.raises(Unreachable):
        await watched.poller.refresh()
    age = watched.poller.age()
    assert watched.poller.view is before
    assert age
    assert age > 0
    cluster.start_rest()
    await eventually(lambda: watched.poller.health.ok, 6)


async def test_a_stopped_slurmctld_is_no_empty_cluster(cluster: SlurmCluster, watched: Cluster) -> None:
    before = watched.poller.view
    assert cluster.ctld
    cluster.ctld.stop(signal.SIGTERM)
    with pytest.raises(ControllerDown, match="Unable to contact slurm controller") as caught:
        await watched.poller.refresh()
    assert caught.value.status == 502
    assert watched.poller.view is before
    cluster.start_ctld()
    await eventually(lambda: watched.poller.health.ok, 10)
    view = await watched.poller.refresh()
    assert len(view.nodes) == 20
    assert view.complete


async def test_a_hanging_slurmctld_is_no_empty_cluster(cluster: SlurmCluster, watched: Cluster) -> None:
    before = watched.poller.view
    assert cluster.ctld
    cluster.ctld.send(signal.SIGSTOP)
    with pytest.raises(SlurmError) as caught:
        await watched.poller.refresh()
    # 504, or 500 when slurmctld froze in the middle of an exchange.
    assert caught.value.status in (500, 504)
    assert watched.poller.view is before
    cluster.ctld.send(signal.SIGCONT)
    await eventually(lambda: watched.poller.health.ok, 10)


async def test_a_slurmctld_that_lost_its_state_does_not_make_nodes_absent(
    cluster: SlurmCluster, watched: Cluster
) -> None:
    assert cluster.ctld
    cluster.ctld.stop()
    for path in (cluster.state / "spool").iterdir():
        if path.is_file():
            path.unlink()
    cluster.start_ctld()
    await eventually(lambda: watched.poller.view is not None and not watched.poller.view.nodes, 10)
    view = watched.poller.view
    assert view
    assert not view.complete
    assert not view.absent("sim-01")
    assert view.node_doubts[0].startswith("20 of 20 nodes vanished")


async def test_one_deleted_record_is_positively_absent(watched: Cluster) -> None:
    await watched.client.delete_node("sim-20")
    view = await watched.poller.refresh()
    assert (view.absent("sim-20"), view.absent("sim-19")) == (True, False)


@pytest.mark.timeout(120)
async def test_a_node_with_a_job_is_never_idle_and_drained(cluster: SlurmCluster, watched: Cluster) -> None:
    cluster.start_worker("w1")
    wrap = ("sbatch", "--parsable", "-w", "w1", "-n1", "--time=10", "-D", "/tmp", "--wrap", "sleep 600")  # noqa: S108
    job = int(cluster.run(*wrap))
    poller = watched.poller
    await eventually(lambda: poller.view is not None and "w1" in poller.view.deadlines, 30)
    await watched.client.drain(["w1"], "slurm-operator: test")
    view = await poller.refresh()
    deadline = view.deadline("w1")
    assert [held.job_id for held in view.jobs_by_node["w1"]] == [job]
    assert deadline
    assert abs(deadline - (time.time() + 600)) < 30
    assert (view.nodes["w1"].draining, view.idle_and_drained("w1")) == (True, False)
    cluster.run("scontrol", "suspend", str(job))
    view = await poller.refresh()
    assert (view.jobs_by_node["w1"][0].state, view.idle_and_drained("w1")) == ({"SUSPENDED"}, False)
    assert view.deadline("w1") is None
    cluster.run("scancel", str(job))
    await eventually(lambda: poller.view is not None and poller.view.idle_and_drained("w1"), 40)
