"""The running lab, and a Slurm cluster of its own for each test."""

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab import topology
from lab.binaries import binary
from lab.cluster import KUBECONFIG
from tests.support.kubectl import Kubectl
from tests.support.slurm_cluster import SlurmCluster


@pytest.fixture(scope="session")
def kubectl() -> Kubectl:
    """The lab's kubectl; tests fail at once, with what to do, when the lab is not up."""
    if not Path(KUBECONFIG).exists():
        pytest.fail("the lab is not running: `make up` starts it", pytrace=False)
    return Kubectl(str(binary("kubectl")), str(KUBECONFIG))


@pytest.fixture(scope="session")
def audit_log() -> Path:
    """Every write request that the lab's API server has answered, one JSON line each."""
    return topology.control_plane(topology.recorded_nodes()[0]).audit_log


@pytest.fixture
def new_cluster(kubectl: Kubectl) -> Iterator[Callable[[], SlurmCluster]]:
    """Makes names for clusters that are deleted after the test."""
    made: list[SlurmCluster] = []

    def make() -> SlurmCluster:
        made.append(SlurmCluster(kubectl, f"e2e-{secrets.token_hex(3)}"))
        return made[-1]

    yield make
    for cluster in made:
        cluster.delete()


@pytest.fixture
def cluster(new_cluster: Callable[[], SlurmCluster]) -> SlurmCluster:
    """A cluster with two idle workers."""
    cluster = new_cluster()
    cluster.create(replicas=2)
    cluster.wait_idle(2)
    return cluster
