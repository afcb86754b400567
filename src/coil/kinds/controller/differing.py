"""Tell nodes that do not take a configuration from those that have not had the time (docs: configuration).

Every start of slurmctld, so every reconfigure, makes the slurmds begin anew with what slurmctld has. A slurmd
that cannot read a file which slurmctld does not (gres.conf, cgroup.conf) goes on with the one before and
says so in its log only; what tells is its start time.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec

from coil.api.meta import Condition
from coil.kinds.controller.live import Outcome, late, present
from coil.kinds.controller.rehearsal import reasons
from coil.slurm.wire import SlurmNode
from coil.support.objects import ObjectKey

GRACE_S = 20.0
"""A slurmd that waits for a device of gres.conf gives up after 19 s; one that takes it needs a second."""
NODES_DIFFER = "NodesDiffer"
_NAMES = 3
_WORDS = 2
_WENT_ON = re.compile(r"Resuming operation, reconfigure failed|fatal: ")
_BEGAN = re.compile(r"Attempting to reconfigure|slurmd started on")


class _Seen(msgspec.Struct, frozen=True):
    """Since when each node of a generation has been late, by a monotonic clock."""

    generation: str
    since: Mapping[str, float]


class Differing:
    """Remembers since when nodes have been late; after its start it takes the condition's word."""

    def __init__(self) -> None:
        self._seen: dict[ObjectKey, _Seen] = {}

    def forget(self, key: ObjectKey) -> None:
        """The Controller is gone."""
        self._seen.pop(key, None)

    def nodes(
        self, key: ObjectKey, outcome: Outcome | None, said: Condition | None, now: float
    ) -> tuple[str, ...]:
        """The nodes that have been late for longer than the grace time, sorted.

        Args:
            key: the Controller.
            outcome: of this pass.
            said: the condition as it is.
            now: a monotonic clock, seconds.
        """
        if outcome is None or not outcome.live or outcome.since is None:
            return ()
        before, first = self._seen.get(key), now
        if before is None and said is not None and said.reason == NODES_DIFFER:
            same = said.message.startswith(f"configuration {outcome.generation} ")
            first = now - GRACE_S if same else now
        known = before.since if before is not None and before.generation == outcome.generation else {}
        names = late(outcome.since, present(outcome.nodes or {}))
        since = {name: known.get(name, first) for name in names}
        self._seen[key] = _Seen(outcome.generation, since)
        return tuple(sorted(name for name, begun in since.items() if now - begun >= GRACE_S))


def few(names: Sequence[str]) -> str:
    """Up to three names and how many more there are."""
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")


def refused(log: str) -> str:
    """Why the daemon of this log went on with the configuration before; empty when it does not say."""
    lines = log.splitlines()
    began = max((index for index, line in enumerate(lines) if _BEGAN.search(line)), default=-1)
    lines = lines[began + 1 :]
    last = max((index for index, line in enumerate(lines) if _WENT_ON.search(line)), default=-1)
    return "; ".join(reasons("\n".join(lines[: last + 1]))[-_WORDS:])


def unfit(nodes: Mapping[str, SlurmNode]) -> str:
    """Which nodes Slurm drains because they have less than is configured, with the reason of the first."""
    names = sorted(name for name, node in nodes.items() if "INVALID_REG" in node.state)
    if not names:
        return ""
    reason = nodes[names[0]].reason
    return f"; Slurm takes no jobs to {few(names)}{f': {reason}' if reason else ''}"
