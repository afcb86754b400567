"""Join pods with their Kubernetes nodes and Slurm nodes. Pure."""

from collections.abc import Callable, Iterable

from coil.api import names
from coil.kinds.nodeset.identity import slurm_name
from coil.kinds.nodeset.snapshot import Registration, Worker
from coil.kube.views import NodeView, PodView
from coil.slurm.view import ClusterView


def join(
    pods: Iterable[PodView], host_of: Callable[[str], NodeView | None], view: ClusterView | None
) -> tuple[Worker, ...]:
    """The workers. A view of None says nothing about any of them."""
    return tuple(_worker(pod, host_of, view) for pod in pods)


def _worker(pod: PodView, host_of: Callable[[str], NodeView | None], view: ClusterView | None) -> Worker:
    name = slurm_name(pod)
    worker = Worker(
        pod=pod,
        slurm_name=name,
        ordinal=names.split_ordinal(pod.metadata.name)[1],
        host=host_of(pod.spec.node_name) if pod.spec.node_name else None,
    )
    return worker if view is None or not name else _with_slurm(worker, view)


def _with_slurm(worker: Worker, view: ClusterView) -> Worker:
    name = worker.slurm_name
    record = view.nodes.get(name)
    absent = Registration.ABSENT if view.absent(name) else Registration.UNKNOWN
    return Worker(
        pod=worker.pod,
        slurm_name=name,
        ordinal=worker.ordinal,
        host=worker.host,
        registration=absent if record is None else Registration.REGISTERED,
        record=record,
        free=view.idle_and_drained(name),
        jobs=view.jobs_by_node.get(name, ()),
        deadline=view.deadline(name),
    )
