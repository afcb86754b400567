"""Guard against believing that most of a cluster vanished at once."""

from collections.abc import Set as AbstractSet

CONFIRM_S = 30.0
"""How long a node list that lost most of its names must stay so before absence is believed."""


class LossGuard:
    """Doubts a node list that lacks half of the names that were there, if that is more than one.

    A slurmctld that lost its state, or another one behind the same address, answers with a short list and
    no error. Believing it at once would make every worker look unregistered (invariant I2).
    """

    def __init__(self) -> None:
        self._believed: AbstractSet[str] = frozenset()
        self._since: float | None = None

    def doubt(self, names: AbstractSet[str], now: float) -> tuple[str, ...]:
        """Judge the names of the present list; `now` is monotonic, in seconds."""
        lost = len(self._believed - names)
        if 2 * lost > len(self._believed) or (lost > 1 and 2 * lost == len(self._believed)):
            since = self._since = now if self._since is None else self._since
            if now - since < CONFIRM_S:
                return (
                    f"{lost} of {len(self._believed)} nodes vanished at once; believed after {CONFIRM_S:g} s",
                )
        self._believed, self._since = frozenset(names), None
        return ()
