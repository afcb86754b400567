"""How long an answer of Slurm is acted on."""

import time
from collections.abc import Callable

ACT_WITHIN_S = 3.0
"""Seconds from Slurm's answer within which what rests on it is done. Requests of the API server may hang for
half a minute; by then somebody may have undrained a node and a job may have started there."""


class Freshness:
    """The answer that one pass acts on."""

    def __init__(
        self, same_cluster: Callable[[], bool] = lambda: True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._same_cluster = same_cluster
        self._clock = clock
        self._answered_at = clock()
        self.ran_out = False
        """Something was left to a later pass."""

    def holds(self) -> bool:
        """Whether to act on it now: it is recent, and from the cluster that the NodeSet still belongs to."""
        good = self._clock() - self._answered_at <= ACT_WITHIN_S and self._same_cluster()
        self.ran_out = self.ran_out or not good
        return good
