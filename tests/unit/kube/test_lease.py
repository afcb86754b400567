"""Who leads, in virtual time, with a Lease object in memory that has the server's optimistic lock."""

import asyncio
from typing import Any

import msgspec
import pytest
from prometheus_client import REGISTRY

from coil.kube.errors import AlreadyExists, Conflict, NotFound, Unavailable
from coil.kube.lease import JITTER, LeadershipLostError, Lease, Timing
from coil.kube.views import LeaseSpecView, LeaseView
from coil.support.objects import ObjectMeta

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]

TIMING = Timing()
RETRY = TIMING.retry * (1 + JITTER)


def now() -> float:
    return asyncio.get_running_loop().time()


class Leases:
    """One Lease, its version, and a way to it that can be down or hang."""

    def __init__(self) -> None:
        self.lease: LeaseView | None = None
        self.version = 0
        self.down = False
        self.hangs = False
        self.writes: list[float] = []

    async def _reach(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.down:
            raise Unavailable(message="refused")
        await asyncio.sleep(0.01)

    def _store(self, body: Any) -> LeaseView:
        self.version += 1
        self.writes.append(now())
        meta = ObjectMeta(name="operator", resource_version=str(self.version))
        self.lease = LeaseView(metadata=meta, spec=msgspec.convert(body["spec"], LeaseSpecView))
        return self.lease

    async def get(self, _resource: object, _name: str, _namespace: str) -> LeaseView:
        await self._reach()
        if self.lease is None:
            raise NotFound(404, "NotFound")
        return self.lease

    async def create(self, _resource: object, body: Any, _namespace: str) -> LeaseView:
        await self._reach()
        if self.lease is not None:
            raise AlreadyExists(409, "AlreadyExists")
        return self._store(body)

    async def replace(self, _resource: object, _name: str, body: Any, _namespace: str) -> LeaseView:
        await self._reach()
        if self.lease is None:
            raise NotFound(404, "NotFound")
        if body["metadata"]["resourceVersion"] != str(self.version):
            raise Conflict(409, "Conflict")
        return self._store(body)


class Replica:
    """A process that wants to lead; `path` is its own way to the server."""

    def __init__(self, path: Any, name: str) -> None:
        self.lease = Lease(path, "ns", "operator", name)
        self.name = name
        self.began: float | None = None
        self.ended: float | None = None
        self.enough = asyncio.Event()

    async def work(self) -> None:
        self.began = now()
        try:
            await self.enough.wait()
        finally:
            await asyncio.sleep(0.5)  # what is under way takes a moment to end
            self.ended = now()

    async def run(self) -> None:
        await self.lease.run(self.work)


class Path:
    """A replica's way to the shared server; cutting it cuts nobody else's."""

    def __init__(self, server: Leases) -> None:
        self.server = server
        self.cut = False

    def __getattr__(self, verb: str) -> Any:
        async def call(*arguments: Any) -> LeaseView:
            if self.cut:
                raise Unavailable(message="no route")
            return await getattr(self.server, verb)(*arguments)

        return call


async def ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_first_leads_at_once_and_renews_every_retry() -> None:
    server = Leases()
    one = Replica(server, "one")
    task = asyncio.ensure_future(one.run())
    await asyncio.sleep(60)
    assert one.began is not None
    assert one.began < 0.1
    assert 60 / RETRY - 2 <= len(server.writes) <= 60 / TIMING.retry + 1
    await ended(task)


async def test_the_lease_is_released_after_the_work_has_ended() -> None:
    server = Leases()
    one = Replica(server, "one")
    task = asyncio.ensure_future(one.run())
    await asyncio.sleep(5)
    await ended(task)
    assert one.ended is not None
    assert server.lease is not None
    assert server.lease.spec.holder_identity == ""
    assert server.writes[-1] >= one.ended


async def test_a_renewal_cut_off_by_the_end_of_the_work_does_not_prevent_the_release() -> None:
    """The server has carried it out, so the version we know is an old one."""
    server = Leases()
    one = Replica(server, "one")
    task = asyncio.ensure_future(one.run())
    await asyncio.sleep(5)
    assert server.lease is not None
    server._store({"spec": msgspec.to_builtins(server.lease.spec)})
    await ended(task)
    assert server.lease.spec.holder_identity == ""


async def test_work_that_ends_by_itself_releases_too() -> None:
    server = Leases()
    one = Replica(server, "one")
    one.enough.set()
    await one.run()
    assert server.lease is not None
    assert server.lease.spec.holder_identity == ""


async def test_an_error_of_the_work_comes_out_as_itself_and_releases() -> None:
    async def fail() -> None:
        raise KeyError("bug")

    server = Leases()
    with pytest.raises(KeyError):
        await Lease(server, "ns", "operator", "one").run(fail)
    assert server.lease is not None
    assert server.lease.spec.holder_identity == ""


async def test_another_waits_while_the_first_renews_and_follows_within_a_retry() -> None:
    server = Leases()
    one, two = Replica(server, "one"), Replica(server, "two")
    first, second = (asyncio.ensure_future(replica.run()) for replica in (one, two))
    await asyncio.sleep(120)
    assert two.began is None
    await ended(first)
    released = now()
    await asyncio.sleep(RETRY + 0.1)
    assert two.began is not None
    assert two.began - released <= RETRY + 0.1
    assert server.lease is not None
    assert server.lease.spec.lease_transitions == 1
    await ended(second)


async def test_a_leader_that_is_killed_is_followed_after_the_leases_duration() -> None:
    server = Leases()
    killed = LeaseView(
        metadata=ObjectMeta(name="operator", resource_version="0"),
        spec=LeaseSpecView(
            holder_identity="dead", lease_duration_seconds=15, renew_time="2020-01-01T00:00:00.0Z"
        ),
    )
    server.lease = killed
    two = Replica(server, "two")
    task = asyncio.ensure_future(two.run())
    await asyncio.sleep(20)
    assert two.began is not None
    assert 15 <= two.began <= 15 + RETRY + 0.1, "another machine's clock says nothing about age"
    await ended(task)


async def test_a_leader_cut_off_stops_before_another_may_begin() -> None:
    server = Leases()
    path = Path(server)
    one, two = Replica(path, "one"), Replica(server, "two")
    first = asyncio.ensure_future(one.run())
    await asyncio.sleep(1)
    second = asyncio.ensure_future(two.run())
    await asyncio.sleep(29)
    path.cut = True
    with pytest.raises(LeadershipLostError, match="was not renewed within 10 s"):
        await first
    await asyncio.sleep(20)
    assert one.ended is not None
    assert two.began is not None
    assert one.ended < two.began
    await ended(second)


async def test_a_server_that_hangs_costs_the_lease_not_the_deadline() -> None:
    server = Leases()
    one = Replica(server, "one")
    task = asyncio.ensure_future(one.run())
    await asyncio.sleep(10)
    server.hangs = True
    with pytest.raises(LeadershipLostError):
        await task
    assert one.ended is not None
    assert one.ended <= 10 + RETRY + TIMING.renew + 1
    server.hangs = False


async def test_a_short_outage_is_survived() -> None:
    server = Leases()
    one = Replica(server, "one")
    task = asyncio.ensure_future(one.run())
    await asyncio.sleep(10)
    server.down = True
    await asyncio.sleep(7)
    server.down = False
    await asyncio.sleep(60)
    assert one.ended is None
    await ended(task)


async def test_a_write_by_somebody_else_is_read_before_the_next_attempt() -> None:
    """Such as `kubectl annotate lease`: the version moves, the holder does not."""
    server = Leases()
    one = Replica(server, "one")
    task = asyncio.ensure_future(one.run())
    await asyncio.sleep(10)
    server.version += 1
    assert server.lease is not None
    meta = ObjectMeta(name="operator", resource_version=str(server.version))
    server.lease = LeaseView(metadata=meta, spec=server.lease.spec)
    await asyncio.sleep(60)
    assert one.ended is None
    await ended(task)


async def test_a_lease_that_was_deleted_is_made_again() -> None:
    server = Leases()
    one = Replica(server, "one")
    task = asyncio.ensure_future(one.run())
    await asyncio.sleep(10)
    server.lease = None
    await asyncio.sleep(60)
    assert one.ended is None
    assert server.lease is not None
    await ended(task)


async def test_a_lease_given_to_another_ends_the_work_as_soon_as_it_is_seen() -> None:
    """Such as `kubectl edit lease`: waiting out the renew time would mean two leaders."""
    server = Leases()
    one = Replica(server, "one")
    task = asyncio.ensure_future(one.run())
    await asyncio.sleep(10)
    server._store({"spec": {"holderIdentity": "two", "leaseDurationSeconds": 15}})
    with pytest.raises(LeadershipLostError, match="is held by 'two' now"):
        await task
    assert one.ended is not None
    assert one.ended <= 10 + 2 * RETRY + 1
    assert server.lease is not None
    assert server.lease.spec.holder_identity == "two", "what is another's is not released"


async def test_two_that_create_at_once_do_not_both_lead() -> None:
    server = Leases()
    replicas = [Replica(server, name) for name in ("one", "two", "three")]
    tasks = [asyncio.ensure_future(replica.run()) for replica in replicas]
    await asyncio.sleep(60)
    assert sum(replica.began is not None for replica in replicas) == 1
    for task in tasks:
        await ended(task)


async def test_waiting_can_be_cancelled() -> None:
    server = Leases()
    server.down = True
    two = Replica(server, "two")
    task = asyncio.ensure_future(two.run())
    await asyncio.sleep(30)
    await ended(task)
    assert two.began is None


async def test_the_series_of_client_go_says_who_leads() -> None:
    def leading() -> float | None:
        return REGISTRY.get_sample_value("leader_election_master_status", {"name": "operator"})

    one = Replica(Leases(), "one")
    assert leading() == 0
    task = asyncio.ensure_future(one.run())
    await asyncio.sleep(5)
    assert leading() == 1
    await ended(task)
    assert leading() == 0
