"""Wait until a configuration stops changing before a slurmctld pod is started or replaced for it.

A cluster is applied object by object, and each NodeSet adds lines to slurm.conf. Without a short wait the
first pod would be started for half a configuration and replaced a moment later.
"""

from coil.support.objects import ObjectKey

QUIET_S = 0.5
"""A configuration unchanged for this long is complete. A client applies objects some 10 to 100 ms apart."""

LONE_S = 2.0
"""The same for a new Controller without any NodeSet: its NodeSets are most likely on their way."""

LIMIT_S = 3.0
"""A configuration that keeps changing is used after this long all the same."""


class Settling:
    """Remembers since when each Controller wants the configuration it wants now.

    Lives in memory only: after a restart of the operator the wait simply begins anew.
    """

    def __init__(self) -> None:
        self._seen: dict[ObjectKey, tuple[float, float, str]] = {}

    def remaining(self, key: ObjectKey, config_hash: str, now: float, quiet: float = QUIET_S) -> float:
        """Seconds to wait until `config_hash` may be rolled out; 0 when it may be now.

        Args:
            key: the Controller.
            config_hash: names the configuration wanted in this pass, one not rolled out yet.
            now: a monotonic clock, seconds.
            quiet: how long it must have been unchanged, seconds.
        """
        first, since, before = self._seen.get(key, (now, now, config_hash))
        if before != config_hash:
            since = now
        self._seen[key] = (first, since, config_hash)
        return max(0.0, min(since + quiet, first + LIMIT_S) - now)

    def done(self, key: ObjectKey) -> None:
        """The wanted configuration is rolled out, or the Controller is gone: forget it."""
        self._seen.pop(key, None)
