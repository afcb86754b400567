"""The budgets of a NodeSet at size, and whether they were kept."""

from collections.abc import Iterator
from itertools import pairwise

import msgspec
from rich.table import Table

from benchmarks.scale.bare import Bare
from benchmarks.scale.phases import Results

POLL_S = 1.0
CALLS = "Slurm calls, polls apart"
_SHOWN = 8
"""Kinds of requests in a line of the table; the file has all."""
_MEMORY = ((0, 85.0), (1_000, 100.0), (5_000, 250.0), (10_000, 450.0))


class Verdict(msgspec.Struct, frozen=True):
    """A figure beside its limit."""

    work: str
    unit: str
    value: float
    limit: float

    @property
    def kept(self) -> bool:
        """Whether it is within the limit."""
        return self.value <= self.limit


def verdicts(results: Results) -> Iterator[Verdict]:
    """All budgets; those of CPU time and traffic are for 1,000 workers and grow with their number."""
    size = max(results.count / 1_000, 0.1)
    created, running, settled = (results.phase(name) for name in ("created", "running", "settled"))
    steady, half = results.phase("steady"), results.phase("half")
    yield from _times(results, results.bare, "x bare")
    if results.alike is not None:
        yield from _times(results, results.alike, "x alike")
    yield Verdict("all workers made", "CPU-s", created.cpu_s, 2 * size)
    yield Verdict("all workers made", CALLS, created.slurm_beyond_polls, 20)
    yield Verdict("all workers running", CALLS, running.slurm_beyond_polls, 20)
    yield Verdict("memory at full size", "MB", settled.rss_mb, memory_limit(results.count))
    yield Verdict("steady minute", "API writes", steady.api_writes, 0)
    yield Verdict("steady minute", "pod lists", steady.pod_lists, 0)
    yield Verdict("steady minute", "MB from Slurm", steady.slurm_received / 1e6, 1)
    yield Verdict("steady minute", "CPU-s", steady.cpu_s, max(size, 1))
    yield Verdict("half of them drained and deleted", "CPU-s", half.cpu_s, 1.5 * size)
    yield Verdict("half of them drained and deleted", CALLS, half.slurm_beyond_polls, 20)
    if results.latencies_s:
        yield Verdict("Slurm state to pod condition, p99", "s", quantile(results.latencies_s, 0.99), 2)


def _times(results: Results, limit: Bare, unit: str) -> Iterator[Verdict]:
    """How much longer the operator takes than a bare loop."""
    made, runs, leave = (results.phase(name).seconds for name in ("created", "running", "half"))
    yield Verdict("all workers made", unit, made / limit.created_s, 2)
    yield Verdict("all workers running", unit, runs / limit.running_s, 1.5)
    allowed = (3 * limit.half_deleted_s + POLL_S) / limit.half_deleted_s
    yield Verdict("half of them drained and deleted", unit, leave / limit.half_deleted_s, allowed)


def memory_limit(count: int) -> float:
    """Resident megabytes, straight lines between the sizes for which a budget was set."""
    for (low, at_low), (high, at_high) in pairwise(_MEMORY):
        if count <= high:
            return at_low + (at_high - at_low) * (count - low) / (high - low)
    return _MEMORY[-1][1] * count / _MEMORY[-1][0]


def quantile(values: list[float], part: float) -> float:
    """The value that this part of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


def judged(found: list[Verdict]) -> Table:
    """One line for each budget."""
    table = Table("work", "measured", "budget", "unit", "", title="budgets")
    for one in found:
        word = "kept" if one.kept else "BROKEN"
        table.add_row(one.work, f"{one.value:.2f}", f"{one.limit:.2f}", one.unit, word)
    return table


def costs(results: Results) -> Table:
    """One line for each phase."""
    titles = ("phase", "s", "bare s", "alike s", "CPU-s", "RSS MB", "Slurm calls", "Slurm MB", "API requests")
    table = Table(*titles, title=f"{results.count:,} workers")
    small, alike = _beside(results.bare), _beside(results.alike) if results.alike else {}
    for phase in results.phases:
        table.add_row(
            phase.name,
            f"{phase.seconds:.1f}",
            small.get(phase.name, ""),
            alike.get(phase.name, ""),
            f"{phase.cpu_s:.2f}",
            f"{phase.rss_mb:.0f}",
            _counts(phase.slurm_calls),
            f"{phase.slurm_received / 1e6:.2f}",
            _counts(phase.api),
        )
    return table


def _beside(limit: Bare) -> dict[str, str]:
    """The bare loop's seconds by phase."""
    times = (limit.created_s, limit.running_s, limit.half_deleted_s, limit.rest_deleted_s)
    return {name: f"{s:.1f}" for name, s in zip(("created", "running", "half", "none"), times, strict=True)}


def _counts(calls: dict[str, int]) -> str:
    shown = list(calls.items())[:_SHOWN]
    rest = sum(calls.values()) - sum(count for _, count in shown)
    return "\n".join([*(f"{count} {kind}" for kind, count in shown), *([f"{rest} others"] if rest else [])])
