"""What one phase cost."""

import time
from collections import Counter

import msgspec

from benchmarks.scale.audit import Audit, writes
from benchmarks.scale.traffic import Counted, Traffic
from benchmarks.scale.usage import Process, Usage


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """One phase: how long, at what cost for the operator, for Slurm and for the API server."""

    name: str
    seconds: float
    cpu_s: float
    rss_mb: float
    slurm_calls: dict[str, int]
    slurm_received: int
    api: dict[str, int]

    @property
    def slurm_total(self) -> int:
        """Calls to slurmrestd."""
        return sum(self.slurm_calls.values())

    @property
    def slurm_beyond_polls(self) -> int:
        """Calls to slurmrestd without one read of each table a second, which depend on time alone."""
        lists = sum(self.slurm_calls.get(kind, 0) for kind in ("GET nodes/", "GET jobs/"))
        return self.slurm_total - min(lists, 2 * int(self.seconds + 1))

    @property
    def api_writes(self) -> int:
        """Requests that change something in the API server, those for leases left out."""
        return writes(Counter(self.api))

    @property
    def pod_lists(self) -> int:
        """Lists of pods, each page counted."""
        return self.api.get("list pods", 0)


class _Reading(msgspec.Struct, frozen=True):
    at: float
    usage: Usage
    traffic: Traffic
    requests: Counter[str]


class Meter:
    """Reads all counters at once."""

    def __init__(self, process: Process, counted: Counted, audit: Audit) -> None:
        self._process = process
        self._counted = counted
        self._audit = audit
        self._began = self._read()

    def begin(self) -> None:
        """A phase begins now."""
        self._began = self._read()

    def lap(self, name: str) -> Phase:
        """What was spent since the phase began; it goes on."""
        now, old = self._read(), self._began
        traffic = now.traffic - old.traffic
        return Phase(
            name=name,
            seconds=now.at - old.at,
            cpu_s=now.usage.cpu_s - old.usage.cpu_s,
            rss_mb=now.usage.rss_mb,
            slurm_calls=dict(traffic.calls.most_common()),
            slurm_received=traffic.received,
            api=dict((now.requests - old.requests).most_common()),
        )

    def written(self) -> int:
        """Writes to the API server and to Slurm since the start."""
        slurm = self._counted.so_far().calls
        sent = sum(count for kind, count in slurm.items() if not kind.startswith("GET "))
        return sent + writes(self._audit.so_far())

    def has_read_slurm(self) -> bool:
        """Whether the operator has asked Slurm for its nodes."""
        return any("nodes/" in kind for kind in self._counted.so_far().calls)

    def _read(self) -> _Reading:
        usage, traffic = self._process.usage(), self._counted.so_far()
        return _Reading(time.monotonic(), usage, traffic, self._audit.so_far())
