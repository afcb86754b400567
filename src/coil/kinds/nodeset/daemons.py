"""Scaling mode DaemonSet: one worker on each Kubernetes node that should have one (spec: nodeset 15)."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from coil.api import keys
from coil.build.nodeset import daemon_hostname
from coil.kinds.nodeset.actions import CreatePod
from coil.kinds.nodeset.drain import Cause, own_cause
from coil.kinds.nodeset.eligibility import Placement, Verdict, judge
from coil.kinds.nodeset.scaling import BURST, Scaling, condemn_foreign, split_by_mode, stay
from coil.kinds.nodeset.snapshot import Snapshot, Worker
from coil.kinds.nodeset.times import seconds
from coil.kube.views import NodeView

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


class _Place(msgspec.Struct, frozen=True):
    """A Kubernetes node, the verdict on it, and the pods that are on it or bound for it."""

    node: NodeView
    verdict: Verdict
    workers: Sequence[Worker]

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def hostname(self) -> str:
        return daemon_hostname(self.name, self.node.metadata.annotations)


def plan_daemons(snapshot: Snapshot) -> Scaling:
    """Compare the workers with the nodes. While no pod can be built nobody is judged (Q14)."""
    mine, foreign = split_by_mode(snapshot)
    if snapshot.placement is None:
        told = {worker.uid: cause for worker in snapshot.workers if (cause := _told_to_leave(worker))}
        return Scaling(desired=snapshot.nodeset.status.desired, mine=mine, condemned=told)
    places = list(_places(snapshot, snapshot.placement, mine))
    condemned = {uid: cause for place in places for uid, cause in _condemned(place)}
    condemned |= {worker.uid: Cause.SCALE_IN for worker in _stranded(snapshot, mine)}
    empty = [place for place in places if place.verdict.run and not place.workers]
    allowed, refusals = _distinct(empty, mine)
    condemned |= condemn_foreign(foreign, missing=len(allowed))
    return Scaling(
        desired=sum(place.verdict.run for place in places),
        mine=mine,
        create=tuple(_creation(snapshot, place) for place in islice(allowed, BURST)),
        missing=len(allowed),
        condemned=condemned,
        vacant=sum(place.verdict.run and not stay(place.workers, condemned) for place in places),
        refusals=tuple(refusals),
    )


def _told_to_leave(worker: Worker) -> Cause | None:
    cause = own_cause(worker)
    return cause if cause is not None and cause.condemns and cause is not Cause.UPDATE else None


def _places(snapshot: Snapshot, where: Placement, mine: Iterable[Worker]) -> Iterator[_Place]:
    """Pods bound to nodes that are gone are left to Kubernetes, which collects them."""
    there: defaultdict[str, list[Worker]] = defaultdict(list)
    for worker in mine:
        if not (worker.finished and worker.terminating):
            there[worker.pod.spec.node_name or worker.pod.pinned_node].append(worker)
    for node in sorted(snapshot.nodes, key=lambda node: node.metadata.name):
        yield _Place(node, judge(where, node), there.get(node.metadata.name, ()))


def _stranded(snapshot: Snapshot, mine: Iterable[Worker]) -> Iterator[Worker]:
    """Pods that wait for a node that is gone; Kubernetes collects only those that were bound to one."""
    there = {node.metadata.name for node in snapshot.nodes}
    for worker in mine:
        waits = not (worker.terminating or worker.finished or worker.pod.spec.node_name)
        if waits and worker.pod.pinned_node and worker.pod.pinned_node not in there:
            yield worker


def _condemned(place: _Place) -> Iterator[tuple[str, Cause]]:
    live = [worker for worker in place.workers if not worker.terminating and not worker.finished]
    if not place.verdict.stay:
        yield from ((worker.uid, Cause.SCALE_IN) for worker in live)
        return
    wrong = [w for w in live if w.labels.get(keys.LABEL_POD_HOSTNAME) != place.hostname]
    yield from ((worker.uid, Cause.REPLACE) for worker in wrong)
    right = sorted((worker for worker in live if worker not in wrong), key=_age)
    # Two pods of one host name are one Slurm node: only one that never ran can go without harm.
    yield from ((worker.uid, Cause.REPLACE) for worker in right[1:] if worker.never_ran)


def _age(worker: Worker) -> tuple[bool, float, str]:
    """Keep the one that is ready and oldest (spec: nodeset 30, Q15)."""
    return not worker.pod.ready, seconds(worker.pod.metadata.creation_timestamp), worker.name


def _distinct(empty: Iterable[_Place], mine: Iterable[Worker]) -> tuple[list[_Place], list[str]]:
    """Places that can have a Slurm node of their own, and why the others cannot (cases DMN-05, DMN-06)."""
    taken = {worker.slurm_name: f"pod {worker.name}" for worker in mine if not worker.finished}
    allowed: list[_Place] = []
    refusals: list[str] = []
    for place in empty:
        name = place.hostname
        if not _LABEL.fullmatch(name):
            refusals.append(f"node {place.name}: {name!r} is no host name (a DNS label of at most 63)")
        elif name in taken:
            refusals.append(f"node {place.name}: host name {name} is that of {taken[name]} already")
        else:
            taken[name] = f"node {place.name}"
            allowed.append(place)
    return allowed, refusals


def _creation(snapshot: Snapshot, place: _Place) -> CreatePod:
    prefix = f"{snapshot.nodeset.metadata.name}-"
    why = f"node {place.name} should have a worker"
    cordoned = place.name in snapshot.held.cordons
    return CreatePod(name=prefix, node=place.name, hostname=place.hostname, cordoned=cordoned, why=why)
