"""Keeps one view of a Slurm cluster, shared by everybody who asks about it.

The loop: read nodes and jobs when they are due or somebody waits, publish the view, tell who changed, sleep.
A failed read changes nothing but the health: the last good view stays and gets older, and the next try
comes within `BACKOFF.cap` seconds (invariants I2, I6).

Only the loop's own reads ask for "what changed since": a slurmctld that took over with its clock behind
says "nothing" to that for what it changed a moment ago. Whoever waits is about to act and gets whole lists.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from coil.slurm import metrics
from coil.slurm.errors import BadReply, SlurmError, Unreachable
from coil.slurm.feed import Feed
from coil.slurm.loss import LossGuard
from coil.slurm.pacing import batches
from coil.slurm.view import ClusterView, JobIndex, changed_nodes, index_jobs, share_nodes
from coil.slurm.wire import JobsReply, NodesReply, NotModified, SlurmNode
from coil.support.backoff import Backoff
from coil.support.log import get_logger

BACKOFF = Backoff(base=0.5, cap=5.0)
"""Pauses after failed reads."""
NODES_DUTY = 0.5
"""`feed.DUTY` of the node table, whose changes people wait for: they are on the pods after three reads."""
MIN_GAP_S = 0.1
"""Least time from the start of one cycle to the next, however many ask for a fresh view."""
REFRESH_DEADLINE_S = 60.0

log = get_logger("slurm-poller")

T = TypeVar("T")


class SlurmReader(Protocol):
    """What the poller needs of a client."""

    async def nodes(self, update_time: int | None = None) -> NodesReply | NotModified:
        """See `SlurmClient.nodes`."""
        ...

    async def jobs(self, update_time: int | None = None) -> JobsReply | NotModified:
        """See `SlurmClient.jobs`."""
        ...


class Health(msgspec.Struct, frozen=True):
    """How the last cycle went: `error` is None when it succeeded; `since` is Unix seconds."""

    error: SlurmError | None
    since: float

    @property
    def ok(self) -> bool:
        """Whether the last cycle read everything."""
        return self.error is None


class ClusterPoller:
    """Polls one cluster. Create it within the event loop; `run` is its task."""

    def __init__(self, reader: SlurmReader, *, name: str = "", interval_s: float = 1.0) -> None:
        self.view: ClusterView | None = None
        """The last good view, or None before the first."""
        self.health = Health(Unreachable(f"cluster {name}", "not read yet"), time.time())
        self._name = name
        self._now = asyncio.get_running_loop().time
        self._nodes_feed = Feed(reader.nodes, interval_s, self._now, NODES_DUTY)
        self._jobs_feed = Feed(reader.jobs, interval_s, self._now)
        self._nodes: dict[str, SlurmNode] | None = None
        self._node_doubts: tuple[str, ...] = ()
        self._jobs: JobIndex | None = None
        self._loss = LossGuard()
        self._failures = 0
        self._asked = asyncio.Event()
        self._cycle = asyncio.Condition()
        self._started = 0
        self._finished = 0
        self._moves = 0
        self._on_change: list[Callable[[frozenset[str]], None]] = []
        self._on_health: list[Callable[[Health], None]] = []

    @property
    def tried(self) -> bool:
        """Whether a read has come to an end, well or badly; before that `health` says nothing."""
        return self._finished > 0

    def on_change(self, callback: Callable[[frozenset[str]], None]) -> None:
        """Call back with the names of the nodes whose record or jobs differ from the view before."""
        self._on_change.append(callback)

    def on_health(self, callback: Callable[[Health], None]) -> None:
        """Call back after the first read, and when reads begin to fail or succeed again."""
        self._on_health.append(callback)

    def age(self) -> float | None:
        """Seconds since the read of the last good view began; None before the first."""
        if self.view is None:
            return None
        return self._now() - min(self._nodes_feed.read_on, self._jobs_feed.read_on)

    def moved(self) -> None:
        """The reader asks another server from now on: nothing that the former said counts as "since"."""
        self._moves += 1
        self._forget()

    async def refresh(self, deadline_s: float = REFRESH_DEADLINE_S) -> ClusterView:
        """Return a view whose reads began after this call and were whole; all waiters share one cycle.

        Raises:
            SlurmError: the cycle failed, or did not come to an end within the deadline.
        """
        number = self._started + 1
        self._asked.set()
        try:
            async with asyncio.timeout(deadline_s), self._cycle:
                await self._cycle.wait_for(lambda: self._finished >= number)
        except TimeoutError:
            raise Unreachable(f"cluster {self._name}", f"no fresh view within {deadline_s:g} s") from None
        if self.health.error is not None:
            raise self.health.error
        assert self.view is not None  # noqa: S101 -- a cycle without error has a view
        return self.view

    async def run(self) -> None:
        """Poll until cancelled; no failure of the cluster ends it."""
        while True:
            began = self._now()
            self._started += 1
            forced = self._asked.is_set()
            self._asked.clear()
            await self._try_cycle(forced=forced)
            self._finished = self._started
            async with self._cycle:
                self._cycle.notify_all()
            await asyncio.sleep(max(0.0, began + MIN_GAP_S - self._now()))
            await self._pause()

    async def _pause(self) -> None:
        if self._failures:
            pause = BACKOFF.delay(self._failures)
        else:
            pause = min(self._nodes_feed.due_at, self._jobs_feed.due_at) - self._now()
        try:
            async with asyncio.timeout(max(0.0, pause)):
                await self._asked.wait()
        except TimeoutError:
            pass

    async def _try_cycle(self, *, forced: bool) -> None:
        if forced:
            self._forget()
        try:
            await self._read(everything=forced or self._failures > 0 or self.view is None)
        except SlurmError as error:
            self._failed(error)
        except Exception as error:
            # A fault of ours in one cluster must not end the polling of the others.
            log.exception("Poll failed by a fault of the program", cluster=self._name)
            self._failed(BadReply(f"cluster {self._name}", repr(error)))
        else:
            self._publish()

    async def _read(self, *, everything: bool) -> None:
        moves = self._moves
        if everything or self._nodes_feed.due_at <= self._now():
            nodes = await self._nodes_feed.read()
            if nodes is not None:
                self._nodes = await _shared(nodes.nodes, self._nodes or {})
                self._node_doubts = nodes.doubts
        if everything or self._jobs_feed.due_at <= self._now():
            jobs = await self._jobs_feed.read()
            if jobs is not None:
                self._jobs = index_jobs(jobs.jobs, jobs.doubts)
        if moves != self._moves:
            raise Unreachable(f"cluster {self._name}", "the address changed while the tables were read")

    def _forget(self) -> None:
        self._nodes_feed.forget()
        self._jobs_feed.forget()

    def _publish(self) -> None:
        assert self._nodes is not None and self._jobs is not None  # noqa: S101, PT018 -- the first cycle reads both
        old = self.view
        loss = self._loss.doubt(self._nodes.keys(), self._now())
        if loss:
            # "Nothing changed since" would keep the short list when the servers are well again.
            self._nodes_feed.forget()
        self.view = ClusterView(
            nodes=self._nodes,
            jobs_by_node=self._jobs.by_node,
            deadlines=self._jobs.deadlines,
            demand=self._jobs.demand,
            observed_at=min(self._nodes_feed.read_at, self._jobs_feed.read_at),
            node_doubts=(*self._node_doubts, *loss),
            job_doubts=self._jobs.doubts,
            vanished="; ".join(loss),
        )
        metrics.polls.labels("success").inc()
        self._set_health(None)
        changed = changed_nodes(old, self.view)
        if changed:
            self._tell(self._on_change, changed)

    def _failed(self, error: SlurmError) -> None:
        metrics.polls.labels("error").inc()
        self._failures += 1
        self._forget()
        self._set_health(error)

    def _set_health(self, error: SlurmError | None) -> None:
        old = self.health
        turned = not self.tried or old.ok != (error is None)
        self.health = Health(error, time.time() if turned else old.since)
        if error is None:
            self._failures = 0
        if turned or type(error) is not type(old.error):
            self._log_health(error)
        if turned:
            self._tell(self._on_health, self.health)

    def _log_health(self, error: SlurmError | None) -> None:
        if error is None:
            log.info("Slurm answers", cluster=self._name)
        else:
            log.info("Slurm gives no usable answer", cluster=self._name, error=str(error))

    def _tell(self, callbacks: Collection[Callable[[T], None]], what: T) -> None:
        for callback in callbacks:
            try:
                callback(what)
            except Exception:
                # One listener must not silence the others.
                log.exception("A listener failed", cluster=self._name)


async def _shared(nodes: Sequence[SlurmNode], previous: Mapping[str, SlurmNode]) -> dict[str, SlurmNode]:
    shared: dict[str, SlurmNode] = {}
    async for batch in batches(nodes):
        shared.update(share_nodes(batch, previous))
    return shared
