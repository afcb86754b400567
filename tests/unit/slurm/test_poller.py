"""The poller in virtual time against a scripted reader."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from coil.slurm.errors import ControllerDown, SlurmError, Unreachable
from coil.slurm.feed import LONGEST_PAUSE_S, RESYNC_S
from coil.slurm.poller import BACKOFF, MIN_GAP_S, NODES_DUTY, ClusterPoller, Health
from coil.slurm.view import ClusterView
from coil.slurm.wire import JobsReply, NodesReply, NotModified, SlurmJob, SlurmNode
from coil.support.tasks import Tasks

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]

DOWN = ControllerDown("GET nodes/", "502 Bad Gateway")


class Reader:
    """A Slurm cluster in a few members; keeps when it was asked and with what."""

    def __init__(self) -> None:
        self.nodes_now: list[SlurmNode] = [node("n1"), node("n2")]
        self.jobs_now: list[SlurmJob] = []
        self.doubts: tuple[str, ...] = ()
        self.version = 1
        self.error: Exception | None = None
        self.jobs_error: Exception | None = None
        self.takes = 0.0
        self.jobs_take = 0.0
        self.asked: list[tuple[float, int | None]] = []
        self.jobs_asked: list[float] = []
        self.jobs_since: list[int | None] = []
        self.clock_behind = False

    def change(self, *nodes: SlurmNode) -> None:
        self.nodes_now = list(nodes)
        self.version += 1

    async def nodes(self, update_time: int | None = None) -> NodesReply | NotModified:
        self.asked.append((now(), update_time))
        await self._answer(self.takes)
        if update_time is not None and (self.clock_behind or update_time == self.version):
            return NotModified()
        return NodesReply(nodes=tuple(self.nodes_now), last_update=self.version, doubts=self.doubts)

    async def jobs(self, update_time: int | None = None) -> JobsReply | NotModified:
        self.jobs_asked.append(now())
        self.jobs_since.append(update_time)
        await self._answer(self.jobs_take)
        if self.jobs_error is not None:
            raise self.jobs_error
        if update_time is not None and self.clock_behind:
            return NotModified()
        return JobsReply(jobs=tuple(self.jobs_now), last_update=1)

    async def _answer(self, after: float) -> None:
        await asyncio.sleep(after)
        if self.error is not None:
            raise self.error


def node(name: str, *state: str) -> SlurmNode:
    return SlurmNode(name=name, state=frozenset(state or ("IDLE",)))


def now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def running(reader: Reader) -> AsyncIterator[ClusterPoller]:
    async with Tasks() as tasks:
        poller = ClusterPoller(reader, name="test")
        tasks.spawn("poll", poller.run())
        yield poller


async def test_reads_are_conditional_and_a_second_apart() -> None:
    reader = Reader()
    async with running(reader) as poller:
        await asyncio.sleep(3.5)
        assert [update_time for _, update_time in reader.asked] == [None, 1, 1, 1]
        assert [at for at, _ in reader.asked] == pytest.approx([0, 1, 2, 3])
        assert poller.age() == pytest.approx(0.5)


async def test_a_change_is_told_with_the_names_of_its_nodes() -> None:
    reader = Reader()
    told: list[frozenset[str]] = []
    async with running(reader) as poller:
        poller.on_change(told.append)
        await asyncio.sleep(2.5)
        assert told == [{"n1", "n2"}]
        reader.change(node("n1", "DOWN"), node("n3"))
        await asyncio.sleep(1)
        assert told[1:] == [{"n1", "n2", "n3"}]


async def test_an_unchanged_cluster_is_the_same_view_for_listeners() -> None:
    reader = Reader()
    told: list[frozenset[str]] = []
    async with running(reader) as poller:
        poller.on_change(told.append)
        await asyncio.sleep(20)
    assert len(told) == 1


async def test_slow_servers_are_asked_less_often() -> None:
    reader = Reader()
    reader.takes = 2
    async with running(reader):
        await asyncio.sleep(60)
    busy = sum(2 for _ in reader.asked)
    assert busy / 60 <= NODES_DUTY + 0.05


async def test_a_long_job_list_does_not_slow_the_node_list_down() -> None:
    reader = Reader()
    reader.jobs_take = 3
    async with running(reader):
        await asyncio.sleep(60)
    assert len(reader.jobs_asked) == pytest.approx(60 / 12, abs=1)
    assert len(reader.asked) > 40


async def test_waiters_share_one_cycle_that_began_after_they_asked() -> None:
    reader = Reader()
    reader.takes = 0.2
    async with running(reader) as poller:
        await asyncio.sleep(0.1)
        asked_at = now()
        waiters = [asyncio.create_task(poller.refresh()) for _ in range(100)]
        views = await asyncio.gather(*waiters)
        assert len({id(view) for view in views}) == 1
        assert len(reader.asked) == 2
        assert reader.asked[1][0] >= asked_at
        assert now() == pytest.approx(0.4)


async def test_a_refresh_reads_nodes_and_jobs() -> None:
    reader = Reader()
    reader.jobs_take = 1
    async with running(reader) as poller:
        await asyncio.sleep(2)
        before = len(reader.jobs_asked)
        await poller.refresh()
        assert len(reader.jobs_asked) == before + 1


async def test_a_refresh_sees_what_a_server_with_its_clock_behind_changed() -> None:
    """After a failover nobody noticed: the change bears an earlier time than the lists that were read."""
    reader = Reader()
    async with running(reader) as poller:
        await poller.refresh()
        reader.clock_behind = True
        reader.change(node("n1", "ALLOCATED"))
        reader.jobs_now = [SlurmJob(job_id=1, state=frozenset({"RUNNING"}), nodes="n2")]
        view = await poller.refresh()
        assert (view.nodes["n1"].busy, view.deadline("n2")) == (True, 0)
        assert (reader.asked[-1][1], reader.jobs_since[-1]) == (None, None)


@pytest.mark.parametrize("failing", ["error", "jobs_error"])
async def test_after_a_failure_of_either_table_both_are_read_whole(failing: str) -> None:
    """Who answers then may be another slurmctld."""
    reader = Reader()
    async with running(reader) as poller:
        await asyncio.sleep(1.5)
        assert (reader.asked[-1][1], reader.jobs_since[-1]) == (1, 1)
        setattr(reader, failing, DOWN)
        await asyncio.sleep(10)
        reader.change(node("n1", "ALLOCATED"))
        setattr(reader, failing, None)
        reader.clock_behind = True
        asked, jobs_asked = len(reader.asked), len(reader.jobs_asked)
        await asyncio.sleep(BACKOFF.cap + 0.1)
        assert (reader.asked[asked][1], reader.jobs_since[jobs_asked]) == (None, None)
        assert poller.view
        assert poller.view.nodes["n1"].busy


async def test_another_server_is_not_asked_what_changed_since_the_former_one_said() -> None:
    reader = Reader()
    async with running(reader) as poller:
        await asyncio.sleep(2.5)
        poller.moved()
        await asyncio.sleep(1)
        assert [since for _, since in reader.asked] == [None, 1, 1, None]
        assert reader.jobs_since == [None, 1, 1, None]


async def test_a_view_is_never_of_two_servers() -> None:
    """The address changes between the tables, or while one of them is under way."""
    for after in (0.5, 1.5):
        reader = Reader()
        reader.takes = reader.jobs_take = 1
        async with running(reader) as poller:
            good = await poller.refresh()
            waiter = asyncio.create_task(poller.refresh())
            await asyncio.sleep(after)
            poller.moved()
            with pytest.raises(Unreachable, match="address changed"):
                await waiter
            assert poller.view is good
            nodes, jobs = len(reader.asked), len(reader.jobs_since)
            await asyncio.sleep(BACKOFF.nominal(1) + 2.1)
            assert poller.health.ok
            assert (reader.asked[nodes][1], reader.jobs_since[jobs]) == (None, None)


async def test_a_storm_of_refreshes_is_spaced() -> None:
    reader = Reader()
    async with running(reader) as poller:
        await poller.refresh()
        before, began = len(reader.asked), now()
        while now() < began + 1:
            await poller.refresh()
        assert len(reader.asked) - before <= 1 / MIN_GAP_S + 1


async def test_a_cancelled_waiter_does_not_disturb_the_others() -> None:
    reader = Reader()
    reader.takes = 0.2
    async with running(reader) as poller:
        first, second = (asyncio.create_task(poller.refresh()) for _ in range(2))
        await asyncio.sleep(0.1)
        first.cancel()
        assert isinstance(await second, ClusterView)
        assert first.cancelled()


async def test_a_failure_keeps_the_last_good_view_and_tells_once() -> None:
    reader = Reader()
    turns: list[Health] = []
    async with running(reader) as poller:
        poller.on_health(turns.append)
        good = await poller.refresh()
        reader.error = DOWN
        with pytest.raises(ControllerDown):
            await poller.refresh()
        await asyncio.sleep(60)
        age = poller.age()
        assert poller.view is good
        assert age
        assert age > 59
        assert [health.error for health in turns] == [None, DOWN]


async def test_the_next_try_after_an_outage_comes_within_seconds() -> None:
    """Invariant I6 asks for 60 s."""
    reader = Reader()
    async with running(reader) as poller:
        await poller.refresh()
        reader.error = DOWN
        await asyncio.sleep(3600)
        reader.error = None
        recovered = asyncio.Event()
        poller.on_health(lambda _: recovered.set())
        async with asyncio.timeout(BACKOFF.cap + 0.1):
            await recovered.wait()
        assert poller.health.ok


async def test_an_outage_is_not_answered_by_a_storm() -> None:
    reader = Reader()
    reader.error = DOWN
    async with running(reader):
        await asyncio.sleep(600)
    assert len(reader.asked) < 600 / (BACKOFF.cap / 2) + 10


async def test_the_first_read_that_fails_is_told() -> None:
    reader = Reader()
    reader.error = DOWN
    turns: list[Health] = []
    async with running(reader) as poller:
        poller.on_health(turns.append)
        assert not poller.tried
        with pytest.raises(ControllerDown):
            await poller.refresh()
        assert (poller.tried, poller.view, poller.age()) == (True, None, None)
    assert [health.error for health in turns] == [DOWN]


async def test_after_a_failed_job_read_no_half_view_is_published() -> None:
    reader = Reader()
    async with running(reader) as poller:
        good = await poller.refresh()

        reader.jobs_error = DOWN
        reader.change(node("n1", "IDLE", "DRAIN"))
        with pytest.raises(ControllerDown):
            await poller.refresh()
        assert poller.view is good


async def test_a_fault_of_the_program_is_a_failed_read_not_the_end() -> None:
    reader = Reader()
    async with running(reader) as poller:
        await poller.refresh()
        reader.error = RuntimeError("a bug")
        with pytest.raises(SlurmError, match="a bug"):
            await poller.refresh()
        reader.error = None
        reader.change(node("n1", "DOWN"))
        assert (await poller.refresh()).nodes["n1"].base_state == "DOWN"
        assert reader.asked[-1][1] is None


async def test_a_failing_listener_does_not_silence_the_others() -> None:
    reader = Reader()
    told: list[frozenset[str]] = []

    def broken(_: frozenset[str]) -> None:
        raise RuntimeError("listener")

    async with running(reader) as poller:
        poller.on_change(broken)
        poller.on_change(told.append)
        await poller.refresh()
    assert told


async def test_doubtful_lists_are_read_again_in_full() -> None:
    reader = Reader()
    reader.doubts = ("unreadable record",)
    async with running(reader) as poller:
        await asyncio.sleep(2.5)
        assert [update_time for _, update_time in reader.asked] == [None, None, None]
        assert poller.view
        assert not poller.view.absent("n9")
        reader.doubts = ()
        await asyncio.sleep(1)
        assert poller.view.absent("n9")


async def test_a_whole_read_comes_now_and_then() -> None:
    """Otherwise a server clock that was set back would hide all changes."""
    reader = Reader()
    async with running(reader):
        await asyncio.sleep(2 * RESYNC_S + 5)
    whole = [at for at, update_time in reader.asked if update_time is None]
    assert whole == pytest.approx([0, RESYNC_S, 2 * RESYNC_S], abs=3)


async def test_a_vanished_cluster_is_believed_after_half_a_minute() -> None:
    reader = Reader()
    async with running(reader) as poller:
        await poller.refresh()
        reader.change()
        assert not (await poller.refresh()).absent("n1")
        await asyncio.sleep(29)
        assert not (await poller.refresh()).absent("n1")
        await asyncio.sleep(2)
        assert (await poller.refresh()).absent("n1")


async def test_a_short_list_is_read_whole_until_it_is_believed() -> None:
    """When the servers are well again they say "nothing changed since", which would keep the short list."""
    reader = Reader()
    async with running(reader) as poller:
        await poller.refresh()
        whole = reader.nodes_now
        reader.change()
        shrunk = await poller.refresh()
        assert shrunk.vanished
        reader.nodes_now = whole  # and no new version
        await asyncio.sleep(3)
        assert poller.view is not None
        assert not poller.view.vanished
        assert not poller.view.absent("n1")


async def test_slow_reads_do_not_put_off_the_next_one_for_long() -> None:
    """Each takes half a minute: the pause of three times that would hide for long that all is well (I6)."""
    reader = Reader()
    reader.takes = 30.0
    async with running(reader):
        await asyncio.sleep(31)
        reader.takes = 0.0
        await asyncio.sleep(LONGEST_PAUSE_S + 1)
    assert [at for at, _ in reader.asked][:2] == pytest.approx([0, 30 + LONGEST_PAUSE_S], abs=1)


async def test_a_poller_that_does_not_run_is_told() -> None:
    poller = ClusterPoller(Reader(), name="ns/idle")
    with pytest.raises(Unreachable, match="cluster ns/idle: no fresh view within 5 s"):
        await poller.refresh(5)


async def test_jobs_that_change_are_told_by_node() -> None:
    reader = Reader()
    told: list[frozenset[str]] = []
    async with running(reader) as poller:
        await poller.refresh()
        poller.on_change(told.append)
        reader.jobs_now = [SlurmJob(job_id=1, state=frozenset({"RUNNING"}), nodes="n2")]
        view = await poller.refresh()
        assert told == [{"n2"}]
        assert view.deadline("n2") == 0
