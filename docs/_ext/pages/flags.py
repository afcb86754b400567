"""Every flag of the programs, and every series of /metrics."""

from collections.abc import Iterator
from typing import Any

import msgspec
from prometheus_client import REGISTRY
from prometheus_client.metrics_core import Metric

from coil.kinds.runtime import Options, Runtime
from coil.kube.cache import Caches
from coil.service import flags
from coil.service import manager as _manager  # noqa: F401 -- importing it registers every series
from coil.service.settings import Settings, WebhookSettings
from coil.service.state import StateCollector
from coil.slurm.clusters import Clusters
from docs._ext.pages import code, table

PROGRAMS: dict[str, type[msgspec.Struct]] = {
    "Operator: `python -m coil.service.manager`": Settings,
    "Webhook: `python -m coil.service.webhook`": WebhookSettings,
}


def page() -> str:
    """The page of flags, in Markdown."""
    parts = ["# Flags\n"]
    for program, settings in PROGRAMS.items():
        parts += [f"## {program}\n", table(["flag", "default", "meaning"], _flags(settings))]
    return "\n".join(parts)


def _flags(settings: type[msgspec.Struct]) -> Iterator[tuple[str, str, str]]:
    for flag in flags.described(settings):
        yield code(f"--{flag.name}"), code(flag.default), flag.meaning


def metrics_page() -> str:
    """The page of metrics, in Markdown."""
    series = sorted((*REGISTRY.collect(), *state_families()), key=lambda metric: metric.name)
    return "# Metrics of the operator\n\n" + table(["series", "type", "meaning"], map(_series, series))


def _series(metric: Metric) -> tuple[str, str, str]:
    suffix = "_total" if metric.type == "counter" else ""
    return code(f"{metric.name}{suffix}"), metric.type, metric.documentation


def state_families() -> list[Metric]:
    """The series about custom resources and clusters, of a manager that knows none."""
    nothing: Any = None
    runtime = Runtime(nothing, Caches(nothing), nothing, Clusters(nothing), Options())
    return list(StateCollector(runtime).collect())
