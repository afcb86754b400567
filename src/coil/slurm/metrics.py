"""Prometheus series about slurmrestd; `call` is one of Slurm's few paths, so labels stay few."""

from prometheus_client import Counter, Histogram

requests = Counter(
    "coil_slurm_requests_total",
    "Requests to slurmrestd; code 0 is no answer.",
    ["method", "call", "code"],
)
received = Counter("coil_slurm_received_bytes_total", "Bytes of answers of slurmrestd.", ["method", "call"])
seconds = Histogram("coil_slurm_request_duration_seconds", "Time from request to answer.", ["method", "call"])
polls = Counter("coil_slurm_polls_total", "Cycles of the shared views, by result.", ["result"])


def call_name(path: str) -> str:
    """Name a call by its path below the API version: `nodes`, `node`, `jobs`, ...

    Names of nodes and reservations are left out.
    """
    parts = path.split("/")
    return parts[2] if parts[0] == "slurm" else parts[0]
