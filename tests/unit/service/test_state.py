"""What a scrape says of the custom resources and of Slurm."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from coil.api.controller import Controller, ControllerSpec
from coil.api.meta import Condition, LocalObjectReference, ObjectMeta
from coil.api.nodeset import NodeSet, NodeSetSpec, NodeSetStatus, Partition
from coil.api.template import ConditionsStatus
from coil.api.token import Token, TokenSpec, TokenStatus
from coil.kinds.resources import CONTROLLERS, NODESETS, TOKENS
from coil.kinds.runtime import Options, Runtime
from coil.kube.cache import Caches
from coil.service.state import StateCollector
from coil.slurm.clusters import Clusters
from coil.slurm.demand import Wanted
from coil.slurm.view import ClusterView
from coil.support.objects import ObjectKey
from coil.support.tasks import Tasks

KEY = ObjectKey("slurm", "one")
META = ObjectMeta(namespace="slurm", name="one")


def _runtime(clusters: Clusters) -> Runtime:
    """A runtime whose caches only tests fill."""
    return Runtime(None, Caches(None), None, clusters, Options(environment={}))  # pyright: ignore[reportArgumentType]


def _scrape(runtime: Runtime) -> str:
    registry = CollectorRegistry()
    registry.register(StateCollector(runtime))
    return generate_latest(registry).decode()


@pytest.mark.asyncio
async def test_conditions_and_counts_come_and_go_with_their_object() -> None:
    async with Tasks() as tasks:
        runtime = _runtime(Clusters(tasks))
        told = Condition(type="Available", status="False", reason="NotReady", message="x")
        runtime.store(CONTROLLERS).put(Controller(metadata=META, status=ConditionsStatus(conditions=[told])))
        runtime.store(NODESETS).put(NodeSet(metadata=META, status=NodeSetStatus(desired=4, slurm_drain=1)))
        text = _scrape(runtime)
        where = 'kind="Controller",name="one",namespace="slurm"'
        assert f'coil_condition{{condition="Available",{where},reason="NotReady",status="False"}} 1.0' in text
        assert 'coil_nodeset_workers{name="one",namespace="slurm",state="desired"} 4.0' in text
        assert 'coil_nodeset_slurm_nodes{name="one",namespace="slurm",state="drain"} 1.0' in text
        runtime.store(CONTROLLERS).remove(KEY)
        assert "coil_condition{" not in _scrape(runtime)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("issued", "lifetime", "seen"),
    [("2026-01-01T00:00:00Z", "1h", True), (None, "1h", False), ("2026-01-01T00:00:00Z", "soon", False)],
)
async def test_the_end_of_a_token(issued: str | None, lifetime: str, *, seen: bool) -> None:
    """Without an end there is no series, and no failing scrape."""
    async with Tasks() as tasks:
        runtime = _runtime(Clusters(tasks))
        token = Token(metadata=META, spec=TokenSpec(lifetime=lifetime), status=TokenStatus(issued_at=issued))
        runtime.store(TOKENS).put(token)
        line = 'coil_token_expires_timestamp_seconds{name="one",namespace="slurm"} 1.7672292e+09'
        assert (line in _scrape(runtime)) is seen


@pytest.mark.asyncio
async def test_a_cluster_that_never_answered_is_unreachable_and_has_no_age() -> None:
    async with Tasks() as tasks:
        clusters = Clusters(tasks)
        clusters.put(KEY, "http://127.0.0.1:1", b"key")
        text = _scrape(_runtime(clusters))
        assert 'coil_slurm_reachable{name="one",namespace="slurm"} 0.0' in text
        assert "coil_slurm_view_age_seconds{" not in text
        clusters.remove(KEY)
        assert "coil_slurm_reachable{" not in _scrape(_runtime(clusters))


@pytest.mark.asyncio
async def test_nodes_wanted_by_partition_once_the_jobs_are_known() -> None:
    """A partition without jobs wants 0, so that an autoscaler may tell it from a cluster nobody can read."""
    async with Tasks() as tasks:
        clusters = Clusters(tasks)
        cluster = clusters.put(KEY, "http://127.0.0.1:1", b"key")
        runtime = _runtime(clusters)
        own = ControllerSpec(extra_conf="PartitionName=DEFAULT MaxTime=1\nPartitionName=all Nodes=ALL")
        runtime.store(CONTROLLERS).put(Controller(metadata=META, spec=own))
        spec = NodeSetSpec(controller_ref=LocalObjectReference(name="one"), partition=Partition(enabled=True))
        runtime.store(NODESETS).put(NodeSet(metadata=META, spec=spec))
        assert "coil_partition_nodes_wanted{" not in _scrape(runtime)
        demand = {"all": Wanted(held=2, pending=3)}
        cluster.poller.view = ClusterView(
            nodes={}, jobs_by_node={}, deadlines={}, observed_at=0, demand=demand
        )
        lines = _scrape(runtime).splitlines()
        assert {line for line in lines if line.startswith("coil_partition_nodes_wanted{")} == {
            'coil_partition_nodes_wanted{name="one",namespace="slurm",partition="all"} 5.0',
            'coil_partition_nodes_wanted{name="one",namespace="slurm",partition="one"} 0.0',
        }
        assert 'coil_partition_nodes_pending{name="one",namespace="slurm",partition="all"} 3.0' in lines
