"""How many nodes the jobs of a partition want (field case SCL-02, ADR 80)."""

import pytest

from coil.slurm.demand import Wanted, tasks
from coil.slurm.view import index_jobs
from coil.slurm.wire import SlurmJob, number


def pending(
    reason: str = "Resources", *, nodes: int = 1, partition: str = "cpu", array: str = ""
) -> SlurmJob:
    return SlurmJob(
        job_id=1,
        state=frozenset({"PENDING"}),
        state_reason=reason,
        partition=partition,
        node_count=number(nodes),
        array_tasks=array,
    )


def running(nodes: str, *states: str, partition: str = "cpu") -> SlurmJob:
    return SlurmJob(
        job_id=2,
        state=frozenset(states or ("RUNNING",)),
        state_reason="None",
        partition=partition,
        nodes=nodes,
        node_count=number(9),
    )


def test_pending_jobs_count_with_their_nodes_and_running_ones_with_those_they_hold() -> None:
    jobs = [pending(), pending(nodes=3), running("n[0-1]"), running("n[1-2]"), running("m", partition="gpu")]
    assert index_jobs(jobs).demand == {"cpu": Wanted(held=3, pending=4), "gpu": Wanted(held=1)}


@pytest.mark.parametrize("states", [("COMPLETING", "COMPLETED"), ("SUSPENDED",), ("RUNNING", "CONFIGURING")])
def test_whatever_is_on_a_node_holds_it(states: tuple[str, ...]) -> None:
    assert index_jobs([running("n1", *states)]).demand == {"cpu": Wanted(held=1)}


@pytest.mark.parametrize(
    "reason", ["None", "Priority", "PartitionConfig", "PartitionNodeLimit", "ReqNodeNotAvail"]
)
def test_reasons_that_nodes_help(reason: str) -> None:
    """As slurmctld gives them to jobs for a partition without nodes, or with fewer than a job wants."""
    assert index_jobs([pending(reason)]).demand == {"cpu": Wanted(pending=1)}


@pytest.mark.parametrize(
    "reason",
    [
        *("JobHeldUser", "JobHeldAdmin", "Dependency", "DependencyNeverSatisfied", "BeginTime", "Licenses"),
        *("Reservation", "PartitionTimeLimit", "PartitionDown", "AssocGrpCpuLimit", "QOSMaxJobsPerUserLimit"),
        *("JobArrayTaskLimit", "SomethingNew"),
    ],
)
def test_reasons_that_no_node_helps(reason: str) -> None:
    assert index_jobs([pending(reason)]).demand == {}


def test_a_finished_job_wants_nothing() -> None:
    assert index_jobs([running("n1", "COMPLETED"), running("", "CANCELLED")]).demand == {}


def test_a_job_for_any_of_two_partitions_counts_in_both() -> None:
    assert index_jobs([pending(partition="a,b")]).demand == {"a": Wanted(pending=1), "b": Wanted(pending=1)}


@pytest.mark.parametrize(
    ("text", "limit", "count"),
    [
        ("", 0, 1),
        ("7", 0, 1),
        ("1-5", 0, 5),
        ("1-4%2", 2, 2),
        ("1,3,5-9:2", 0, 5),
        ("1,3,5,...", 0, 3),
        ("1-2%9", 9, 2),
    ],
)
def test_a_record_stands_for_the_tasks_of_an_array(text: str, limit: int, count: int) -> None:
    job = SlurmJob(job_id=1, state=frozenset({"PENDING"}), array_tasks=text, array_limit=number(limit))
    assert tasks(job) == count


def test_tasks_of_an_array_want_their_nodes_each() -> None:
    assert index_jobs([pending(nodes=3, array="1-4")]).demand == {"cpu": Wanted(pending=12)}
