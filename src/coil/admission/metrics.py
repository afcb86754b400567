"""Series of the webhook, under the names of controller-runtime (spec: control-plane 15.4)."""

from prometheus_client import Counter, Gauge, Histogram

requests = Counter(
    "controller_runtime_webhook_requests_total", "Reviews by HTTP status.", ["webhook", "code"]
)
latency = Histogram(
    "controller_runtime_webhook_latency_seconds", "Time from question to answer.", ["webhook"]
)
in_flight = Gauge("controller_runtime_webhook_requests_in_flight", "Reviews under way.", ["webhook"])
certificate_reads = Counter("certwatcher_read_certificate_total", "Certificates read, good or not.")
certificate_errors = Counter(
    "certwatcher_read_certificate_errors_total", "Certificates that could not be used."
)
certificate_ends = Gauge(
    "coil_certificate_expires_timestamp_seconds", "When the webhook's certificate expires, Unix time."
)
