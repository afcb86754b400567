"""Join pods with their Kubernetes nodes and Slurm nodes. Pure."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec

from coil.api import names
from coil.kinds.nodeset.identity import decode_comment, slurm_name
from coil.kinds.nodeset.snapshot import Registration, Worker
from coil.kinds.nodeset.times import seconds
from coil.kube.views import NodeView, PodView
from coil.slurm.view import ClusterView
from coil.slurm.wire import SlurmNode


def join(
    pods: Iterable[PodView],
    host_of: Callable[[str], NodeView | None],
    view: ClusterView | None,
    used_elsewhere: Callable[[PodView], bool] = lambda _pod: False,
) -> tuple[Worker, ...]:
    """The workers. A view of None says nothing about any of them.

    `used_elsewhere` says whether a pod outside this NodeSet has the Slurm name of the pod.
    """
    named = [(pod, slurm_name(pod)) for pod in pods]
    users = Counter(name for pod, name in named if not has_ended(pod))
    workers = [
        _worker(pod, name, host_of, view, shared=_has_rival(pod, name, users) or used_elsewhere(pod))
        for pod, name in named
    ]
    absent = any(worker.registration is Registration.ABSENT for worker in workers)
    return tuple(_with_other_names(workers, view.nodes.values()) if absent and view else workers)


def has_ended(pod: PodView) -> bool:
    """No container of the pod will ever run again, so no slurmd speaks for it."""
    return pod.status.phase in ("Failed", "Succeeded")


def _with_other_names(workers: Iterable[Worker], records: Iterable[SlurmNode]) -> Iterator[Worker]:
    """Note for workers that are not registered which record may be theirs under another name.

    slurmd chooses the name it registers with: on a node `a.example` it may say `a`.
    """
    owners = {clue: record.name for record in records for clue in _clues_of_record(record)}
    for worker in workers:
        if worker.registration is not Registration.ABSENT:
            yield worker
            continue
        found = (owners[clue] for clue in _clues_of_pod(worker) if clue in owners)
        yield msgspec.structs.replace(worker, registered_as=next(found, ""))


def _clues_of_record(record: SlurmNode) -> Iterator[tuple[str, ...]]:
    if record.address:
        yield "address", record.address
    for name in {record.name, record.hostname} - {""}:
        yield "name", _first_label(name)
    info = decode_comment(record.comment)
    if info is not None and info.pod_name:
        yield "pod", info.namespace, info.pod_name


def _clues_of_pod(worker: Worker) -> Iterator[tuple[str, ...]]:
    yield "address", worker.pod.status.pod_ip
    yield "name", _first_label(worker.slurm_name)
    yield "pod", *worker.pod.metadata.key


def _first_label(name: str) -> str:
    return name.partition(".")[0].casefold()


def _has_rival(pod: PodView, name: str, users: Counter[str]) -> bool:
    return name != "" and users[name] > (not has_ended(pod))


def _worker(
    pod: PodView,
    name: str,
    host_of: Callable[[str], NodeView | None],
    view: ClusterView | None,
    *,
    shared: bool,
) -> Worker:
    ready = pod.status.condition("Ready") if pod.ready else None
    worker = Worker(
        shared=shared,
        pod=pod,
        slurm_name=name,
        terminating=pod.terminating,
        healthy=pod.status.phase == "Running" and ready is not None and not pod.terminating,
        ready_since=seconds(ready.last_transition_time if ready is not None else None),
        ordinal=names.split_ordinal(pod.metadata.name)[1],
        host=host_of(pod.spec.node_name) if pod.spec.node_name else None,
    )
    return worker if view is None or not name else _with_slurm(worker, view)


def _with_slurm(worker: Worker, view: ClusterView) -> Worker:
    name = worker.slurm_name
    record = view.nodes.get(name)
    absent = Registration.ABSENT if view.absent(name) else Registration.UNKNOWN
    return msgspec.structs.replace(
        worker,
        registration=absent if record is None else Registration.REGISTERED,
        record=record,
        free=view.idle_and_drained(name),
        jobs=view.jobs_by_node.get(name, ()),
        deadline=view.deadline(name),
        idle_for=_idle_for(record, view.observed_at),
    )


def _idle_for(record: SlurmNode | None, now: float) -> float:
    if record is None or not record.last_busy.set:
        return math.inf
    return now - record.last_busy.number
