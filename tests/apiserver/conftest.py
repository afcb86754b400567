"""One API server of each sort for all tests here, and the operator in a namespace of each test's own."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from lab.apiserver import ApiServer
from tests.support import slurm
from tests.support.apiserver import api_server, namespace
from tests.support.manager import Manager, Namespace, managed_server
from tests.support.nodeset_stage import Stage, staged

__all__ = ["api_server", "managed_server", "namespace"]


@pytest.fixture
def space(managed_server: ApiServer) -> Namespace:
    """A namespace that no other test uses."""
    return Namespace(managed_server)


@pytest.fixture
def manager(managed_server: ApiServer, space: Namespace) -> Iterator[Manager]:
    """The operator for that namespace; it may still be starting."""
    with Manager(managed_server, namespaces=[space.name]) as running:
        yield running


@pytest.fixture
def slurm_cluster() -> Iterator[slurm.SlurmCluster]:
    """A real slurmctld and slurmrestd without nodes."""
    if reason := slurm.missing():
        pytest.skip(reason)
    with slurm.slurm_cluster() as running:
        yield running


@pytest_asyncio.fixture
async def stage(managed_server: ApiServer, slurm_cluster: slurm.SlurmCluster) -> AsyncIterator[Stage]:
    """A NodeSet between that API server and that slurmctld."""
    async with staged(managed_server, slurm_cluster) as made:
        yield made
