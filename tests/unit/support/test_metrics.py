"""The names dashboards rely on (spec: control-plane 15.4)."""

import pytest

from coil.support import metrics

COUNTERS = [
    "controller_runtime_reconcile_total",
    "controller_runtime_reconcile_errors_total",
    "controller_runtime_reconcile_panics_total",
    "controller_runtime_reconcile_timeouts_total",
    "controller_runtime_terminal_reconcile_errors_total",
    "workqueue_adds_total",
    "workqueue_retries_total",
    "rest_client_requests_total",
]
OTHERS = [
    "controller_runtime_reconcile_time_seconds",
    "controller_runtime_max_concurrent_reconciles",
    "controller_runtime_active_workers",
    "workqueue_depth",
    "workqueue_queue_duration_seconds",
    "workqueue_work_duration_seconds",
    "workqueue_unfinished_work_seconds",
    "workqueue_longest_running_processor_seconds",
    "leader_election_master_status",
]


@pytest.mark.parametrize("name", COUNTERS + OTHERS)
def test_every_series_is_described(name: str) -> None:
    assert f"# TYPE {name} " in metrics.exposition().decode()


def test_there_are_no_created_series() -> None:
    metrics.leader.labels("x").set(1)
    metrics.requests.labels("200", "GET", "host").inc()
    assert b"_created" not in metrics.exposition()


def test_the_process_is_described() -> None:
    assert b"process_resident_memory_bytes" in metrics.exposition()
