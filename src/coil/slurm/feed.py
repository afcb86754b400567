"""Repeated conditional reads of one table of slurmctld, no oftener than the server can bear."""

import time
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from coil.slurm.errors import BadReply
from coil.slurm.wire import NotModified


class Dated(Protocol):
    """A reply that says when it was read and whether it is whole."""

    @property
    def last_update(self) -> int:
        """The server's time of the read, Unix seconds."""
        ...

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why something may be missing."""
        ...


R = TypeVar("R", bound=Dated)

RESYNC_S = 600.0
"""A whole read comes at least this often: only it survives a server clock that was set back."""
DUTY = 0.25
"""Most of the time that reads of a table may keep slurmctld and slurmrestd busy."""
LONGEST_PAUSE_S = 20.0
"""However long a read took: the next one must tell within a minute that the servers are well again (I6)."""


class Feed(Generic[R]):
    """Reads one table; remembers what the server needs to know to answer "not modified".

    `monotonic` measures spans (the event loop's clock), the wall clock only dates what was read.
    """

    def __init__(
        self,
        read: Callable[[int | None], Awaitable[R | NotModified]],
        interval_s: float,
        monotonic: Callable[[], float],
        duty: float = DUTY,
    ) -> None:
        self.due_at = monotonic()
        """When the next read is due, by `monotonic`."""
        self.read_at = 0.0
        """When the last successful read began, Unix seconds."""
        self.read_on = float("-inf")
        """The same moment by `monotonic`."""
        self._read = read
        self._interval_s = interval_s
        self._monotonic = monotonic
        self._duty = duty
        self._update_time: int | None = None
        self._whole_at = 0.0

    async def read(self) -> R | None:
        """Read the table; None when it did not change since the last read.

        Raises:
            SlurmError: nothing was learnt; what was read before is as valid as it was.
        """
        began, began_at = self._monotonic(), time.time()
        if began - self._whole_at >= RESYNC_S:
            self._update_time = None
        # Whoever answers after a failure may be another host with another clock.
        asked, self._update_time = self._update_time, None
        reply = await self._read(asked)
        took = self._monotonic() - began
        rest = min(took * (1 / self._duty - 1), LONGEST_PAUSE_S)
        self.due_at = began + took + max(self._interval_s, rest)
        if isinstance(reply, NotModified):
            if asked is None:
                raise BadReply("conditional read", "answered 304 to a read without update_time")
            self._update_time = asked
        else:
            # A reply with doubts is read again in full until it is whole.
            self._update_time = None if reply.doubts else reply.last_update
            self._whole_at = began
        self.read_at, self.read_on = began_at, began
        return None if isinstance(reply, NotModified) else reply

    def forget(self) -> None:
        """Read everything the next time: "not modified since" would prove nothing, or comes too late."""
        self._update_time = None
