"""Leader election by a Lease object, as client-go does it.

Clocks of different machines are never compared: a lease counts as held until it has not changed for
its duration on our own clock. Who cannot renew stops working before another may begin; who sees that
another holds the lease (a person may have written it) stops at once.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec

from coil.kube.client import Client
from coil.kube.core import LEASES
from coil.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from coil.kube.views import LeaseView
from coil.support import metrics
from coil.support.clock import micro_time, utc_now
from coil.support.log import get_logger
from coil.support.objects import JsonObject
from coil.support.tasks import Tasks

JITTER = 0.2
"""Part of the retry time by which a try may come later."""

log = get_logger("lease")


class LeadershipLostError(Exception):
    """The lease could not be renewed in time; another replica may lead by now."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds; the defaults are those of controller-runtime (spec: control-plane 15.2).

    Args:
        duration: how long others wait after the last renewal they saw.
        renew: how long the holder tries to renew before it gives up; less than `duration`, so that
            it stops before another may start.
        retry: between two tries.
    """

    duration: float = 15.0
    renew: float = 10.0
    retry: float = 2.0


class Lease:
    """A named lease and our claim to it.

    Args:
        client: an open client.
        namespace: where the Lease object lives.
        name: its name; one per group of replicas.
        identity: who we are; must be unique among the replicas and their restarts.
    """

    def __init__(
        self, client: Client, namespace: str, name: str, identity: str, timing: Timing | None = None
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._timing = timing or Timing()
        self._seen: LeaseView | None = None
        self._seen_at = float("-inf")
        self._leading = False
        self._gauge = metrics.leader.labels(name)
        self._gauge.set(0)

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait until we lead, then do `work` for as long as we do; release the lease after it.

        Raises:
            LeadershipLostError: renewing failed; `work` was cancelled and has ended.
        """
        await self._acquire()
        log.info("leading", lease=self._name, identity=self._identity)
        self._set_leading(leading=True)
        try:
            await self._lead(work)
        finally:
            self._set_leading(leading=False)
            await self._release()

    def _set_leading(self, *, leading: bool) -> None:
        self._leading = leading
        self._gauge.set(leading)

    async def _lead(self, work: Callable[[], Awaitable[None]]) -> None:
        async with Tasks() as tasks:
            tasks.spawn(f"lease/{self._name}", self._renew())
            await work()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._timing.retry)
            try:
                async with asyncio.timeout(self._timing.renew):
                    await self._acquire()
            except TimeoutError:
                raise LeadershipLostError(
                    f"lease {self._namespace}/{self._name} was not renewed within {self._timing.renew:g} s"
                ) from None

    async def _acquire(self) -> None:
        """Try until the lease is ours, however long that takes."""
        while True:
            if await self._try():
                return
            # Replicas that start together should not ask together for ever.
            await asyncio.sleep(self._timing.retry * (1 + JITTER * random.random()))  # noqa: S311 -- no secret

    async def _try(self) -> bool:
        """One attempt to take or keep the lease; False when somebody else holds it, or on an error."""
        try:
            async with asyncio.timeout(self._timing.renew / 2):
                return await self._take()
        except (Conflict, NotFound):
            self._seen = None  # somebody else wrote or deleted it: read before the next attempt
        except (ApiError, TimeoutError) as error:
            log.warning("lease could not be taken or renewed", lease=self._name, error=str(error))
        return False

    async def _take(self) -> bool:
        if self._seen is None or not self._holds(self._seen):
            try:
                self._observe(await self._client.get(LEASES, self._name, self._namespace))
            except NotFound:
                return await self._create()
        lease = self._seen
        if lease is None or self._held_by_other(lease):
            return self._yield_to(lease)
        await self._write(lease, self._claim(lease, utc_now()))
        return True

    def _yield_to(self, lease: LeaseView | None) -> bool:
        if self._leading and lease is not None:
            holder = lease.spec.holder_identity
            raise LeadershipLostError(f"lease {self._namespace}/{self._name} is held by {holder!r} now")
        return False

    async def _create(self) -> bool:
        body = {"metadata": {"name": self._name}, "spec": self._claim(None, utc_now())}
        try:
            self._observe(await self._client.create(LEASES, body, self._namespace))
        except AlreadyExists:
            return False
        return True

    async def _write(self, lease: LeaseView, spec: JsonObject) -> None:
        metadata = {"name": self._name, "resourceVersion": lease.metadata.resource_version}
        body = {"metadata": metadata, "spec": spec}
        self._observe(await self._client.replace(LEASES, self._name, body, self._namespace))

    def _observe(self, lease: LeaseView) -> None:
        if self._seen is None or self._seen.spec != lease.spec:
            self._seen_at = asyncio.get_running_loop().time()
        self._seen = lease

    def _holds(self, lease: LeaseView) -> bool:
        return lease.spec.holder_identity == self._identity

    def _held_by_other(self, lease: LeaseView) -> bool:
        age = asyncio.get_running_loop().time() - self._seen_at
        duration = lease.spec.lease_duration_seconds or self._timing.duration
        return bool(lease.spec.holder_identity) and not self._holds(lease) and age < duration

    def _claim(self, lease: LeaseView | None, now: datetime) -> JsonObject:
        spec = lease.spec if lease is not None else None
        ours = lease is not None and self._holds(lease)
        changes = (spec.lease_transitions or 0) if spec else 0
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": int(self._timing.duration),
            "acquireTime": (ours and spec and spec.acquire_time) or micro_time(now),
            "renewTime": micro_time(now),
            "leaseTransitions": changes if ours or lease is None else changes + 1,
        }

    async def _release(self) -> None:
        """Let another replica lead at once instead of after `duration`; failing only costs time."""
        try:
            async with asyncio.timeout(self._timing.retry):
                await self._give_up()
        except (ApiError, TimeoutError) as error:
            log.warning("lease could not be released", lease=self._name, error=str(error))

    async def _give_up(self) -> None:
        # Ending the work may have cut off a renewal that the server did or still does carry out: our own
        # idea of the lease's version cannot be trusted.
        while self._holds(lease := await self._client.get(LEASES, self._name, self._namespace)):
            try:
                return await self._write(lease, _released(lease))
            except Conflict:
                continue
        return None


def _released(lease: LeaseView) -> JsonObject:
    now = micro_time(utc_now())
    return {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": now,
        "renewTime": now,
        "leaseTransitions": lease.spec.lease_transitions or 0,
    }
