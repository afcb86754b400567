"""Build NodeSets, worker pods, Slurm nodes and snapshots for tests of the NodeSet kind."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from coil.api import keys
from coil.api.nodeset import NodeSet
from coil.kinds.nodeset import times
from coil.kinds.nodeset.joining import join
from coil.kinds.nodeset.snapshot import Known, Snapshot, Unknown, Worker, mostly_absent
from coil.kube.views import AffinityView, NodeView, PodView
from coil.slurm.view import ClusterView, index_jobs
from coil.slurm.wire import SlurmJob, SlurmNode

__all__ = [
    "NOW",
    "host",
    "job",
    "nodeset",
    "pinned_to",
    "pod",
    "record",
    "replace",
    "snapshot",
    "view",
    "workers",
]

NOW = times.seconds("2026-03-01T12:00:00Z")
LONG_AGO = "2026-03-01T10:00:00Z"
REVISION = "6654c8864d"
OLD_REVISION = "7d5c9f8b66"
NAMESPACE = "slurm"
SILENT = Unknown(reason="Unreachable", message="connection refused")


def nodeset(name: str = "gpu", replicas: int = 2, **spec: Any) -> NodeSet:
    """A NodeSet; members of the spec as on the wire."""
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "generation": 1},
            "spec": {"controllerRef": {"name": "main"}, "replicas": replicas, **spec},
        },
        NodeSet,
    )


def host(
    name: str = "kn-1", *, cordoned: bool = False, annotations: Mapping[str, str] | None = None
) -> NodeView:
    """A Kubernetes node whose kubelet is alive."""
    return msgspec.convert(
        {
            "metadata": {"name": name, "annotations": annotations or {}},
            "spec": {"unschedulable": cordoned},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        },
        NodeView,
    )


def pod(  # noqa: PLR0913 -- every argument is one fact about a pod
    ordinal: int = 0,
    *,
    owner: str = "gpu",
    phase: str = "Running",
    ready: bool | None = None,
    ready_since: str = LONG_AGO,
    created: str = LONG_AGO,
    node: str | None = None,
    revision: str = REVISION,
    terminating: bool = False,
    waiting: str | None = None,
    mode: str = "StatefulSet",
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    uid: str | None = None,
    version: str = "1",
) -> PodView:
    """A worker pod: running and ready on `kn-<ordinal>` unless told otherwise; node "" is unscheduled."""
    name = f"{owner}-{ordinal}"
    is_ready = phase == "Running" if ready is None else ready
    where = f"kn-{ordinal}" if node is None else node
    conditions = [{"type": "Ready", "status": str(is_ready), "lastTransitionTime": ready_since}]
    status = {"name": keys.SLURMD, "state": {"waiting": {"reason": waiting}} if waiting else {}}
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "uid": uid or f"uid-{name}",
                "resourceVersion": version,
                "creationTimestamp": created,
                "deletionTimestamp": LONG_AGO if terminating else None,
                "labels": {
                    keys.LABEL_NAME: keys.SLURMD,
                    keys.LABEL_INSTANCE: owner,
                    keys.LABEL_POD_NAME: name,
                    keys.LABEL_SCALING_MODE: mode,
                    keys.LABEL_REVISION: revision,
                    **(labels or {}),
                },
                "annotations": annotations or {},
                "ownerReferences": [
                    {
                        "apiVersion": "slinky.slurm.net/v1beta1",
                        "kind": "NodeSet",
                        "name": owner,
                        "uid": f"uid-{owner}",
                        "controller": True,
                    }
                ],
            },
            "spec": {"nodeName": where, "hostname": name},
            "status": {
                "phase": phase,
                "conditions": conditions,
                "containerStatuses": [status] if where and phase != "" else [],
            },
        },
        PodView,
    )


def pinned_to(node: str) -> AffinityView:
    """What binds a pod to one node."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return msgspec.convert({"nodeAffinity": required}, AffinityView)


def record(name: str, state: str = "IDLE", reason: str = "", **members: Any) -> SlurmNode:
    """A Slurm node; `state` joined by plus signs as sinfo writes it. Slurm gave the reason."""
    facts = {"reason_user": keys.SLURM_USER, **members}
    return SlurmNode(name=name, state=frozenset(state.split("+")), reason=reason, **facts)


def job(
    number: int, nodes: str, state: str = "RUNNING", *, start: float = NOW, minutes: int = 60
) -> SlurmJob:
    """A job that holds nodes."""
    return msgspec.convert(
        {
            "job_id": number,
            "job_state": [state],
            "nodes": nodes,
            "start_time": {"set": True, "number": int(start)},
            "time_limit": {"set": True, "number": minutes},
        },
        SlurmJob,
    )


def view(records: Iterable[SlurmNode], jobs: Iterable[SlurmJob] = (), *, at: float = NOW) -> ClusterView:
    """What Slurm said."""
    index = index_jobs(jobs)
    return ClusterView(
        nodes={node.name: node for node in records},
        jobs_by_node=index.by_node,
        deadlines=index.deadlines,
        observed_at=at,
    )


def workers(
    pods: Iterable[PodView], seen: ClusterView | None = None, hosts: Iterable[NodeView] = ()
) -> tuple[Worker, ...]:
    """Join; a Kubernetes node that is not given is alive and not cordoned."""
    known = {node.metadata.name: node for node in hosts}
    return join(pods, lambda name: known.get(name) or host(name), seen)


def snapshot(  # noqa: PLR0913 -- every argument is one fact
    pods: Iterable[PodView],
    records: Iterable[SlurmNode] | None = (),
    *,
    jobs: Iterable[SlurmJob] = (),
    hosts: Iterable[NodeView] = (),
    of: NodeSet | None = None,
    fresh: bool = True,
    absent_for: float = 3600.0,
    **members: Any,
) -> Snapshot:
    """A snapshot at NOW; records of None means that Slurm is silent. What is absent has long been so."""
    seen = None if records is None else view(records, jobs)
    slurm = SILENT
    if seen is not None:
        slurm = Known(
            observed_at=seen.observed_at, fresh=fresh, node_count=len(seen.nodes), peer="Slurm 26.05"
        )
    joined = tuple(replace(w, absent_for=absent_for) for w in workers(pods, seen, hosts))
    return Snapshot(
        nodeset=of or nodeset(),
        revision=REVISION,
        workers=joined,
        mostly_absent=mostly_absent(joined),
        slurm=slurm,
        **members,
    )
