"""CPU time and memory of the operator's process, its children included."""

import msgspec
import psutil


class Usage(msgspec.Struct, frozen=True):
    """CPU seconds since the process began, and resident memory now."""

    cpu_s: float
    rss_mb: float


class Process:
    """A running process, measured from outside."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)

    def usage(self) -> Usage:
        """What it used so far."""
        cpu, rss = 0.0, 0
        for process in (self._process, *self._process.children(recursive=True)):
            times = process.cpu_times()
            cpu += times.user + times.system + times.children_user + times.children_system
            rss += process.memory_info().rss
        return Usage(cpu, rss / 1e6)
