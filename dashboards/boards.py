"""The boards: cluster, jobs, NodeSets, control plane, operator."""

from dashboards.panels import Board, Panel, Query

_INSTANCE = {"instance": "label_values(slurm_nodes, instance)"}
_NODESET = {
    "namespace": "label_values(coil_nodeset_workers, namespace)",
    "name": 'label_values(coil_nodeset_workers{namespace=~"$namespace"}, name)',
}


def _slurm(*names: str) -> tuple[Query, ...]:
    """Series of slurmctld, named by the end of their names."""
    return tuple(Query(f'{name}{{instance=~"$instance"}}', name.rsplit("_", 1)[-1]) for name in names)


def _partition(expression: str) -> tuple[Query, ...]:
    """A series of each partition; `%` stands for the selection of the cluster."""
    return (Query(expression.replace("%", '{instance=~"$instance"}'), "{{partition}}"),)


def _nodeset(metric: str) -> tuple[Query, ...]:
    selection = f'{metric}{{namespace=~"$namespace", name=~"$name"}}'
    return (Query(f"sum by (state) ({selection})", "{{state}}"),)


CLUSTER = Board(
    "coil-cluster",
    "Slurm / cluster",
    _INSTANCE,
    (
        Panel("Nodes", _slurm("slurm_nodes"), stat=True),
        Panel("Jobs running", _slurm("slurm_jobs_running"), stat=True),
        Panel("Jobs pending", _slurm("slurm_jobs_pending"), stat=True),
        Panel(
            "Nodes by state",
            _slurm("slurm_nodes_alloc", "slurm_nodes_mixed", "slurm_nodes_idle", "slurm_nodes_down"),
        ),
        Panel(
            "Nodes out of service",
            _slurm("slurm_nodes_drained", "slurm_nodes_draining", "slurm_nodes_noresp", "slurm_nodes_fail"),
        ),
        Panel("Nodes in maintenance or reserved", _slurm("slurm_nodes_maint", "slurm_nodes_resv")),
        Panel("CPUs allocated", _partition("slurm_partition_nodes_cpus_alloc%")),
        Panel(
            "Share of CPUs allocated",
            _partition("slurm_partition_nodes_cpus_alloc% / slurm_partition_cpus%"),
            "percentunit",
        ),
        Panel("GPUs allocated by jobs", _partition("slurm_partition_jobs_gpus_alloc%")),
        Panel("Nodes of partitions", _partition("slurm_partition_nodes%")),
        Panel("Nodes allocated", _partition("slurm_partition_nodes_alloc%")),
        Panel("Memory allocated", _partition("slurm_partition_nodes_mem_alloc%"), "mbytes"),
    ),
)

JOBS = Board(
    "coil-jobs",
    "Slurm / jobs",
    _INSTANCE,
    (
        Panel(
            "Jobs by state",
            _slurm(
                "slurm_jobs_pending", "slurm_jobs_running", "slurm_jobs_completing", "slurm_jobs_suspended"
            ),
        ),
        Panel(
            "Ends that are no success",
            _slurm(
                "slurm_jobs_failed", "slurm_jobs_timeout", "slurm_jobs_outofmemory", "slurm_jobs_cancelled"
            ),
            about="Of the jobs that slurmctld still remembers (MinJobAge).",
        ),
        Panel(
            "Jobs that lost their node",
            _slurm("slurm_jobs_node_failed", "slurm_jobs_requeued", "slurm_jobs_preempted"),
        ),
        Panel("Pending by partition", _partition("slurm_partition_jobs_pending%")),
        Panel("Running by partition", _partition("slurm_partition_jobs_running%")),
        Panel(
            "Most nodes that one pending job wants",
            _partition("slurm_partition_jobs_max_job_nodes_nohold%"),
            about="Jobs on hold do not count.",
        ),
        Panel(
            "Nodes that jobs hold and want",
            (
                Query("coil_partition_nodes_wanted", "{{namespace}}/{{name}} {{partition}}"),
                Query("coil_partition_nodes_pending", "{{namespace}}/{{name}} {{partition}} pending"),
            ),
            about="What autoscaling follows; jobs that no node helps do not count.",
        ),
        Panel("CPUs of jobs", _slurm("slurm_jobs_cpus_alloc")),
        Panel("GPUs of jobs", _slurm("slurm_jobs_gpus_alloc")),
        Panel("Memory of jobs", _slurm("slurm_jobs_memory_alloc"), "mbytes"),
    ),
)

NODESETS = Board(
    "coil-nodesets",
    "Slurm / NodeSets",
    _NODESET,
    (
        Panel("Worker pods", _nodeset("coil_nodeset_workers")),
        Panel("Slurm nodes", _nodeset("coil_nodeset_slurm_nodes")),
        Panel(
            "Workers of each NodeSet",
            (
                Query(
                    'coil_nodeset_workers{namespace=~"$namespace", name=~"$name", state="available"}',
                    "{{namespace}}/{{name}}",
                ),
            ),
        ),
        Panel(
            "Pods created and deleted",
            (Query("sum by (action, cause) (rate(coil_nodeset_pods_total[5m]))", "{{action}} {{cause}}"),),
            "ops",
        ),
        Panel(
            "Drains the operator waits for",
            (Query("coil_slurm_nodes_draining", "{{namespace}}/{{name}}"),),
        ),
        Panel(
            "NodeSets that say No",
            (
                Query(
                    'coil_condition{kind="NodeSet", status="False"}',
                    "{{namespace}}/{{name}}: {{condition}} {{reason}}",
                ),
            ),
        ),
    ),
)

CONTROL_PLANE = Board(
    "coil-control-plane",
    "Slurm / control plane",
    _INSTANCE,
    (
        Panel(
            "Daemons",
            (
                Query(
                    'coil_condition{condition="Available", status="True"}',
                    "{{kind}} {{namespace}}/{{name}}",
                ),
            ),
        ),
        Panel(
            "Slurm answers the operator",
            (Query("coil_slurm_reachable", "{{namespace}}/{{name}}"),),
        ),
        Panel(
            "Age of the view of Slurm", (Query("coil_slurm_view_age_seconds", "{{namespace}}/{{name}}"),), "s"
        ),
        Panel("Scheduling cycle", _slurm("slurm_schedule_cycle_last", "slurm_sched_mean_cycle"), "µs"),
        Panel("Backfill cycle", _slurm("slurm_bf_cycle_last", "slurm_bf_mean_cycle"), "µs"),
        Panel("Queue of jobs to schedule", _slurm("slurm_schedule_queue_len", "slurm_bf_queue_len")),
        Panel("Records that wait for slurmdbd", _slurm("slurm_slurmdbd_queue_size")),
        Panel("Messages that wait for slurmd", _slurm("slurm_agent_queue_size", "slurm_agent_cnt")),
        Panel("Requests under way in slurmctld", _slurm("slurm_server_thread_cnt")),
        Panel(
            "Configuration",
            (
                Query(
                    'coil_condition{condition=~"ConfigurationLive|ConfigurationRejected"}',
                    "{{namespace}}/{{name}}: {{condition}} {{status}}",
                ),
            ),
        ),
        Panel(
            "Time that tokens still last",
            (Query("coil_token_expires_timestamp_seconds - time()", "{{namespace}}/{{name}}"),),
            "s",
        ),
        Panel(
            "Latency of slurmrestd",
            (
                Query(
                    "histogram_quantile(0.99, sum by (le) "
                    "(rate(coil_slurm_request_duration_seconds_bucket[5m])))",
                    "p99",
                ),
            ),
            "s",
        ),
    ),
)

OPERATOR = Board(
    "coil-operator",
    "Slurm / operator",
    {},
    (
        Panel("Leader", (Query("leader_election_master_status", "{{pod}}"),)),
        Panel(
            "Passes",
            (
                Query(
                    "sum by (controller, result) (rate(controller_runtime_reconcile_total[5m]))",
                    "{{controller}} {{result}}",
                ),
            ),
            "ops",
        ),
        Panel(
            "Failed passes",
            (
                Query(
                    "sum by (controller) (rate(controller_runtime_reconcile_errors_total[5m]))",
                    "{{controller}}",
                ),
            ),
            "ops",
        ),
        Panel(
            "Length of a pass, p99",
            (
                Query(
                    "histogram_quantile(0.99, sum by (controller, le) "
                    "(rate(controller_runtime_reconcile_time_seconds_bucket[5m])))",
                    "{{controller}}",
                ),
            ),
            "s",
        ),
        Panel("Waiting keys", (Query("workqueue_depth", "{{name}}"),)),
        Panel(
            "Requests to the API server",
            (Query("sum by (method, code) (rate(rest_client_requests_total[5m]))", "{{method}} {{code}}"),),
            "reqps",
        ),
        Panel(
            "Requests to slurmrestd",
            (Query("sum by (code) (rate(coil_slurm_requests_total[5m]))", "{{code}}"),),
            "reqps",
        ),
        Panel("Bytes from slurmrestd", (Query("rate(coil_slurm_received_bytes_total[5m])", "bytes"),), "Bps"),
        Panel(
            "Memory", (Query('process_resident_memory_bytes{job=~".*slurm-operator.*"}', "{{pod}}"),), "bytes"
        ),
    ),
)

BOARDS = (CLUSTER, JOBS, NODESETS, CONTROL_PLANE, OPERATOR)
