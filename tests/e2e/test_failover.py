"""The active slurmctld goes, under a stream of jobs (long form: `make bench-failover TIMES=10`)."""

import secrets
from collections.abc import Iterator

import pytest

from tests.support.failover import Fault, strike
from tests.support.ha_cluster import HaCluster
from tests.support.kubectl import Kubectl
from tests.support.operator import Operator

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.timeout(400)]

WRITTEN_S = 6
"""slurmctld writes its jobs at most once in 5 s: one accepted after that is lost with it."""
AT_ONCE_S = -1
"""Jobs that were accepted while the fault struck."""


@pytest.fixture(scope="module")
def cluster(kubectl: Kubectl) -> Iterator[HaCluster]:
    """A cluster with one backup, each slurmctld on a node of its own."""
    operator = Operator(kubectl)
    replicas = len(operator.pods())
    with HaCluster(kubectl, f"e2e-{secrets.token_hex(3)}").running(workers=2) as made:
        operator.scale(2)
        yield made
    operator.scale(replicas)


def test_slurmctlds_are_apart_and_one_is_labelled(cluster: HaCluster) -> None:
    """Both run, on two nodes; clients reach the first."""
    assert len({pod["spec"]["nodeName"] for pod in cluster.controllers().values()}) == 2
    assert cluster.labelled() == [f"{cluster.name}-controller-0"]
    assert "SlurmctldTimeout=15" in cluster.slurm("scontrol", "show", "config").replace(" ", "")


def test_no_job_is_lost_when_the_pod_is_deleted(cluster: HaCluster) -> None:
    """The new pod reads what slurmctld wrote at its end; each job runs once."""
    outage = strike(cluster, Fault.DELETE, before=5)
    print(f"{Fault.DELETE.value}: {outage}")
    assert outage.seconds < 20
    assert outage.fates.lost == []
    assert outage.fates.repeated == []


def test_a_node_that_was_cut_off_comes_back_without_harm(cluster: HaCluster) -> None:
    """A backup takes over; the old slurmctld is ended before it overwrites anything, and takes over again."""
    outage = strike(cluster, Fault.CUT, before=5, patience=12)
    print(f"{Fault.CUT.value}: {outage}")
    assert outage.seconds < 30
    assert outage.hand_back is not None
    # 1 to 3 s; 30 s when the old one had asked the backup in Slurm's own way before it was ended.
    assert outage.hand_back < 35
    preferred, backup = sorted(cluster.controllers())
    assert f"{backup} has become active: ending slurmctld" in cluster.said_before(preferred)
    assert f"{preferred} takes over" in cluster.said_before(backup)
    assert [age for age in outage.lost_ages if not AT_ONCE_S < age < WRITTEN_S] == []
    cluster.wait_ready()
