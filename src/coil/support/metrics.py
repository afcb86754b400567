"""Prometheus series, under the names dashboards of other operators already know.

Names, labels and buckets: controller-runtime and client-go (spec: control-plane 15.4).
"""

from collections.abc import Sequence

from prometheus_client import REGISTRY, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import generate_latest

# `*_created` series double the scrape and say nothing that `process_start_time_seconds` does not.
disable_created_metrics()

_RECONCILE_BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5),
    *(0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5),
    *(6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60),
)
_QUEUE_BUCKETS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000)


def _counter(name: str, text: str, labels: Sequence[str]) -> Counter:
    return Counter(name, text, labels)


reconciles = _counter(
    "controller_runtime_reconcile_total",
    "Passes by result: success, error, requeue_after.",
    ["controller", "result"],
)
reconcile_errors = _counter(
    "controller_runtime_reconcile_errors_total", "Passes that failed.", ["controller"]
)
reconcile_panics = _counter(
    "controller_runtime_reconcile_panics_total", "Passes ended by a fault of the program.", ["controller"]
)
reconcile_timeouts = _counter(
    "controller_runtime_reconcile_timeouts_total", "Passes that met their deadline.", ["controller"]
)
terminal_reconcile_errors = _counter(
    "controller_runtime_terminal_reconcile_errors_total",
    "Errors that are not retried: always 0, coil retries every error.",
    ["controller"],
)
reconcile_seconds = Histogram(
    "controller_runtime_reconcile_time_seconds",
    "Length of a pass.",
    ["controller"],
    buckets=_RECONCILE_BUCKETS,
)
max_concurrent_reconciles = Gauge(
    "controller_runtime_max_concurrent_reconciles", "Workers of a controller.", ["controller"]
)
active_workers = Gauge("controller_runtime_active_workers", "Workers with a pass under way.", ["controller"])

_QUEUE = ("name", "controller")
queue_depth = Gauge("workqueue_depth", "Keys ready for a worker.", _QUEUE)
queue_adds = _counter("workqueue_adds_total", "Keys added.", _QUEUE)
queue_retries = _counter("workqueue_retries_total", "Keys added again after an error.", _QUEUE)
queue_wait_seconds = Histogram(
    "workqueue_queue_duration_seconds", "From being ready to being taken.", _QUEUE, buckets=_QUEUE_BUCKETS
)
queue_work_seconds = Histogram(
    "workqueue_work_duration_seconds", "From being taken to being done.", _QUEUE, buckets=_QUEUE_BUCKETS
)
queue_unfinished_seconds = Gauge(
    "workqueue_unfinished_work_seconds", "Sum of the ages of the passes under way.", _QUEUE
)
queue_longest_seconds = Gauge(
    "workqueue_longest_running_processor_seconds", "Age of the oldest pass under way.", _QUEUE
)

requests = _counter("rest_client_requests_total", "Requests to the API server.", ["code", "method", "host"])
leader = Gauge("leader_election_master_status", "1 while this process leads.", ["name"])

relists = _counter("coil_reflector_lists_total", "Complete lists read, the first included.", ["resource"])
watch_ends = _counter(
    "coil_reflector_watch_ends_total", "Watches that ended, by cause.", ["resource", "cause"]
)
undecodable = _counter(
    "coil_reflector_undecodable_total", "Objects coil could not read and left aside.", ["resource"]
)
worker_pods = _counter(
    "coil_nodeset_pods_total",
    "Worker pods created and deleted; cause of a deletion: scaling-mode, scale-in, update, replace, "
    "or gone for those that had ended or that Slurm lost.",
    ["action", "cause"],
)
events_dropped = _counter("coil_events_dropped_total", "Events not recorded, by cause.", ["cause"])


def exposition() -> bytes:
    """All series of this process in the Prometheus text format."""
    return generate_latest(REGISTRY)
