"""What this process did and its caches may not show yet; empty after a restart, which is safe.

A restarted operator begins with complete caches. Within one process, a pass that has not seen its own
writes would choose other victims or create pods twice, so it only reports (spec: nodeset 8.3).
"""

import time
from collections.abc import Callable, Iterable, Mapping

import msgspec

from coil.kinds.nodeset.snapshot import Known, Registration, Slurm, Worker
from coil.kube.expectations import EXPIRY, Expectations
from coil.kube.resource import KubeObject
from coil.slurm.wire import Reservation, ReservationUpdate
from coil.support.objects import ObjectKey

HURRY_S = 1.0
"""Least seconds between two passes that follow at once: the polls tell too, a second or two later."""

_NOTHING = (frozenset[str](), 0.0)


class Memory:
    """Creations, deletions and changes of pods under way, per NodeSet."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.expectations = Expectations(clock)
        self._absent: dict[ObjectKey, dict[tuple[str, bool], float]] = {}
        self._placed: dict[ObjectKey, dict[str, tuple[str, str]]] = {}
        self._commented: dict[ObjectKey, float] = {}
        self._reserved: dict[ObjectKey, tuple[ReservationUpdate, Reservation | None]] = {}
        self._hurried: dict[ObjectKey, float] = {}
        self._outdated: dict[ObjectKey, dict[str, tuple[set[str], float]]] = {}

    def settled(self, owner: ObjectKey, cached: Iterable[KubeObject]) -> bool:
        """Whether the cached pods, and the NodeSet itself, show all that was done so far."""
        return self.expectations.satisfied(owner) and not self._shows_outdated(owner, cached)

    def under_way(self, owner: ObjectKey, cached: Iterable[KubeObject]) -> frozenset[str]:
        """Uids of those that were changed or deleted, which their cached state does not show."""
        outdated, going = self._outdated.get(owner, {}), self.expectations.deletions(owner)
        return frozenset(
            found.metadata.uid
            for found in cached
            if found.metadata.key in going
            or found.metadata.resource_version in outdated.get(found.metadata.uid, _NOTHING)[0]
        )

    def changed(self, owner: ObjectKey, uid: str, before: str, after: str) -> None:
        """A patch turned version `before` of an object into version `after`."""
        if before == after:
            return
        versions, _ = self._outdated.setdefault(owner, {}).get(uid, (set[str](), 0.0))
        self._outdated[owner][uid] = ((versions | {before}) - {after}, self._clock())

    def with_absences(self, owner: ObjectKey, workers: Iterable[Worker], slurm: Slurm) -> tuple[Worker, ...]:
        """Say for how long each worker has been missing in Slurm; any doubt begins the count anew.

        Turning ready does too: slurmd registers about then, whatever the clocks of the nodes say.
        """
        workers, now, before = tuple(workers), self._clock(), self._absent.get(owner, {})
        certain = isinstance(slurm, Known) and not slurm.doubt
        missing = [w for w in workers if certain and w.registration is Registration.ABSENT]
        since = {(w.uid, w.healthy): before.get((w.uid, w.healthy), now) for w in missing}
        self._absent[owner] = since
        if not since:
            return workers
        return tuple(
            msgspec.structs.replace(w, absent_for=now - since.get((w.uid, w.healthy), now)) for w in workers
        )

    def place(self, owner: ObjectKey, workers: Iterable[Worker], written: Mapping[str, str]) -> None:
        """Topologies were written, by Slurm name; those of pods that are gone are forgotten."""
        old, new = self._placed.get(owner, {}), dict[str, tuple[str, str]]()
        for worker in workers:
            if worker.slurm_name in written and worker.record is not None:
                new[worker.uid] = written[worker.slurm_name], worker.record.topology
            elif worker.uid in old:
                new[worker.uid] = old[worker.uid]
        self._placed[owner] = new

    def placed(self, owner: ObjectKey) -> Mapping[str, tuple[str, str]]:
        """See `Snapshot.placed`."""
        return self._placed.get(owner, {})

    def commented(self, owner: ObjectKey, at: float) -> None:
        """Comments of Slurm nodes were written; `at` in UNIX seconds."""
        self._commented[owner] = at

    def commented_at(self, owner: ObjectKey) -> float:
        """See `Snapshot.commented_at`."""
        return self._commented.get(owner, 0.0)

    def hurry_in(self, owner: ObjectKey) -> float:
        """Seconds until Slurm may be asked whether it has done what it was told; 0 but once in a while."""
        now, last = self._clock(), self._hurried.get(owner, -HURRY_S)
        if last <= now:
            last = self._hurried[owner] = max(last + HURRY_S, now)
        return last - now

    def reserved(self, owner: ObjectKey, put: ReservationUpdate, held: Reservation | None) -> None:
        """A reservation was written while Slurm showed `held`."""
        self._reserved[owner] = put, held

    def is_reserved(
        self, owner: ObjectKey, wanted: ReservationUpdate | None, held: Reservation | None
    ) -> bool:
        """The same was written before and Slurm shows what it did then: it tells some flags otherwise."""
        put, before = self._reserved.get(owner, (None, None))
        if wanted is None or held is None or put != wanted:
            return False
        if before is None:
            self._reserved[owner] = wanted, held
        return before is None or before == held

    def forget(self, owner: ObjectKey) -> None:
        """The NodeSet is gone."""
        self.expectations.forget(owner)
        self._outdated.pop(owner, None)
        self._absent.pop(owner, None)
        self._reserved.pop(owner, None)
        self._placed.pop(owner, None)
        self._commented.pop(owner, None)
        self._hurried.pop(owner, None)

    def _shows_outdated(self, owner: ObjectKey, cached: Iterable[KubeObject]) -> bool:
        outdated = self._outdated.get(owner)
        if not outdated:
            return False
        now, versions = self._clock(), {p.metadata.uid: p.metadata.resource_version for p in cached}
        self._outdated[owner] = {
            uid: (old, since)
            for uid, (old, since) in outdated.items()
            if versions.get(uid) in old and now - since <= EXPIRY
        }
        return bool(self._outdated[owner])
