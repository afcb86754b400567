"""A small Kubernetes and Slurm in memory: the truth that the NodeSet operator's writes are judged by.

Holds the rules of both systems that the plans rely on (spec: nodeset 7.3): a DRAIN flag outlives slurmd, a
stopping worker sets its node DOWN, records outlive pods, and jobs start only on nodes that take work.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from coil.api import keys
from coil.api.nodeset import NodeSet
from coil.build.nodeset import daemon_hostname
from coil.kinds.nodeset.drain import POD_TERMINATING, Cause
from coil.kinds.nodeset.eligibility import Placement
from coil.kinds.nodeset.held import read
from coil.kinds.nodeset.times import text
from coil.kube.views import ConditionView, NodeView, PodView, TaintView
from coil.slurm.view import ClusterView, index_jobs
from coil.slurm.wire import Number, SlurmNode
from tests.support import workers as build

ORDINALS, HOST_NETWORK, DAEMONS = "ordinals", "host network", "daemons"
"""What a worker is named after in Slurm: its pod, the machine it happens to run on, the machine it is for."""

POOL = Placement(node_selector={"pool": "gpu"})
"""On which machines daemon pods belong."""


class Harm(AssertionError):
    """The operator broke an invariant."""


@dataclass
class Host:
    """The truth about one machine; its name is that of the Kubernetes node."""

    pool: str = "gpu"
    taint: str = ""
    """Effect of a taint that workers do not tolerate."""
    override: str = ""
    """Host name that the annotation asks for."""


@dataclass
class Pod:
    """The truth about one pod."""

    name: str
    uid: str
    revision: str
    created: float
    slurm: str
    """Name of its Slurm node; on the host network that is known when it is scheduled."""
    labels: dict[str, str] = field(default_factory=dict)
    pinned: str = ""
    """The machine that it was made for."""
    annotations: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, ConditionView] = field(default_factory=dict)
    version: int = 1
    node: str = ""
    phase: str = "Pending"
    waiting: str | None = None
    ready: bool = False
    ready_since: float = 0.0
    ran: bool = False
    terminating: bool = False
    users_cordon: bool = False
    gone: bool = False

    @property
    def running(self) -> bool:
        """Slurmd runs in it."""
        return self.phase == "Running" and not self.gone

    @property
    def healthy(self) -> bool:
        """As the specification says."""
        return self.phase == "Running" and self.ready and not self.terminating


@dataclass
class Record:
    """The truth about one Slurm node."""

    base: str = "IDLE"
    drain: bool = False
    silent: bool = False
    reason: str = ""
    reason_at: float = 0.0
    comment: str = ""
    foreign: str = ""
    """Reason with which somebody else took the node out of service; empty when nobody did."""


class World:
    """Kubernetes and Slurm."""

    def __init__(self, replicas: int, limit: int, revision: str, kind: str = ORDINALS) -> None:
        self.kind = kind
        self.clock = build.NOW
        self.replicas = replicas
        self.limit = limit
        self.revision = revision
        self.broken = set[str]()
        self.fault = False
        self.pods: dict[str, Pod] = {}
        self.cordoned = set[str]()
        machines = replicas if self.daemon else 12
        self.hosts = {f"kn-{number}": Host() for number in range(machines)}
        self.rivals = set[str]()
        """Slurm names that a running pod of another NodeSet has too."""
        self.records: dict[str, Record] = {"other-0": Record()}
        self.jobs: dict[int, str] = {}
        self.slurm_up = True
        self.doubts: tuple[str, ...] = ()
        self.counter = 0
        self.held: str | None = None
        """The annotation in which the operator remembers what others hold."""
        self.lost_cordons = set[str]()
        """At these places a pod was deleted for an update while a user's cordon was on it."""

    @property
    def daemon(self) -> bool:
        """One worker for each machine."""
        return self.kind == DAEMONS

    @property
    def wanted(self) -> int:
        """How many workers there should be."""
        return len(self.eligible()) if self.daemon else self.replicas

    def eligible(self) -> list[str]:
        """Machines on which a new worker may start."""
        return sorted(
            name
            for name, host in self.hosts.items()
            if host.pool == "gpu" and not host.taint and name not in self.cordoned
        )

    def hostname(self, host: str) -> str:
        """Host name of a daemon pod there."""
        override = self.hosts[host].override
        return daemon_hostname(host, {keys.ANNOTATION_HOSTNAME_OVERRIDE: override} if override else {})

    def place(self, pod: Pod) -> str:
        """What a pod has in common with its successor."""
        return (pod.node or pod.pinned) if self.daemon else pod.name

    def pod_of(self, name: str) -> Pod | None:
        """The pod that speaks for a Slurm node, which is the one that runs if there are several."""
        found = [pod for _, pod in sorted(self.pods.items()) if pod.slurm == name]
        return max(found, key=lambda pod: (pod.running, pod.created), default=None)

    def number(self) -> int:
        """A new number."""
        self.counter += 1
        return self.counter

    def nodeset(self) -> NodeSet:
        """The NodeSet as users want it now."""
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": self.limit}}
        mode = "DaemonSet" if self.daemon else "StatefulSet"
        made = build.nodeset(replicas=self.replicas, updateStrategy=strategy, scalingMode=mode)
        annotations = {} if self.held is None else {keys.ANNOTATION_HELD: self.held}
        return build.replace(made, metadata=build.replace(made.metadata, annotations=annotations))

    def touch(self, pod: Pod) -> None:
        """The pod has another version now."""
        pod.version = self.number()

    def busy(self, name: str) -> bool:
        """A job is on that Slurm node."""
        return name in self.jobs.values()

    def start_job(self, which: int = 0) -> None:
        """Slurm starts a job on one of the nodes that take work; `which` counts through them."""
        names = [name for name in sorted(self.records) if self._takes_work(name)]
        if self.slurm_up and names:
            self.jobs[self.number()] = names[which % len(names)]

    def _takes_work(self, name: str) -> bool:
        record, pod = self.records[name], self.pod_of(name)
        return pod is not None and pod.running and record.base == "IDLE" and not record.drain

    def drop_jobs(self, name: str) -> None:
        """Slurm ends the jobs of a node that is down."""
        self.jobs = {number: node for number, node in self.jobs.items() if node != name}

    def stop_daemon(self, pod: Pod) -> None:
        """The pod's containers end; the Slurm node is down and its jobs are over."""
        if (record := self.records.get(pod.slurm)) is not None and pod.ran:
            # What somebody said after the operator's last look cannot have been remembered.
            remembered = read({keys.ANNOTATION_HELD: self.held or "{}"}).drains.get(pod.slurm)
            held = record.foreign if record.foreign == remembered else ""
            self.set_down(record, POD_TERMINATING)
            record.foreign = held
            self.drop_jobs(pod.slurm)

    def set_down(self, record: Record, reason: str) -> None:
        """A worker's own good-bye replaces any reason, as that of a pod of the reference does."""
        record.base, record.reason, record.reason_at, record.foreign = "DOWN", reason, self.clock, ""

    def slurm_node(self, name: str) -> SlurmNode:
        """The record as slurmrestd shows it."""
        record = self.records[name]
        base = "ALLOCATED" if record.base == "IDLE" and self.busy(name) else record.base
        flags = {"DRAIN"} if record.drain else set[str]()
        flags |= {"NOT_RESPONDING"} if record.silent else set()
        return SlurmNode(
            name=name,
            state=frozenset({base, *flags}),
            reason=record.reason,
            reason_user="admin" if record.foreign else keys.SLURM_USER,
            reason_changed_at=Number(set=True, number=int(record.reason_at)),
            comment=record.comment,
        )

    def view(self) -> ClusterView | None:
        """What Slurm answers now; None when it does not."""
        if not self.slurm_up:
            return None
        jobs = index_jobs(build.job(number, node, start=build.NOW) for number, node in self.jobs.items())
        return ClusterView(
            nodes={name: self.slurm_node(name) for name in self.records},
            jobs_by_node=jobs.by_node,
            deadlines=jobs.deadlines,
            observed_at=self.clock,
            node_doubts=self.doubts,
        )

    def pod_view(self, pod: Pod) -> PodView:
        """The pod as the API server shows it."""
        view = build.pod(
            int(pod.name.rsplit("-", 1)[1]),
            phase=pod.phase,
            ready=pod.ready,
            ready_since=text(pod.ready_since),
            created=text(pod.created),
            node=pod.node,
            revision=pod.revision,
            terminating=pod.terminating,
            waiting=pod.waiting,
            mode="DaemonSet" if self.daemon else "StatefulSet",
            annotations=pod.annotations,
            labels=pod.labels | ({keys.LABEL_POD_HOSTNAME: pod.slurm} if self.daemon else {}),
            uid=pod.uid,
            version=str(pod.version),
        )
        status = view.status
        spec = build.replace(
            view.spec,
            hostname=pod.slurm if self.daemon else pod.name,
            host_network=self.kind == HOST_NETWORK,
            affinity=build.pinned_to(pod.pinned) if pod.pinned else None,
        )
        conditions = (*status.conditions, *pod.conditions.values())
        return build.replace(view, spec=spec, status=build.replace(status, conditions=conditions))

    def host_view(self, name: str) -> NodeView | None:
        """The Kubernetes node as the API server shows it."""
        if (host := self.hosts.get(name)) is None:
            return None
        annotations = {keys.ANNOTATION_HOSTNAME_OVERRIDE: host.override} if host.override else {}
        view = build.host(name, cordoned=name in self.cordoned, annotations=annotations)
        taints = [("bad", host.taint)] if host.taint else []
        taints += [("node.kubernetes.io/unschedulable", "NoSchedule")] if name in self.cordoned else []
        return build.replace(
            view,
            metadata=build.replace(view.metadata, labels={"pool": host.pool}),
            spec=build.replace(view.spec, taints=tuple(TaintView(key=k, effect=e) for k, e in taints)),
        )

    def host_views(self) -> tuple[NodeView, ...]:
        """All Kubernetes nodes."""
        return tuple(view for name in self.hosts if (view := self.host_view(name)) is not None)

    def unavailable(self) -> int:
        """Workers that are missing from service."""
        return max(self.wanted - sum(self.serves(pod) for pod in self._counted()), 0)

    def _counted(self) -> Iterable[Pod]:
        """A worker on a machine that takes no new one is beyond those that are wanted."""
        pods = self.pods.values()
        return [pod for pod in pods if self.place(pod) in self.eligible()] if self.daemon else pods

    def serves(self, pod: Pod) -> bool:
        """Well for Kubernetes and for Slurm, drained or not; DOWN adds nothing to an admin's drain."""
        record = self.records.get(pod.slurm)
        if record is None or record.silent or not pod.healthy:
            return False
        return record.base != "DOWN" or (record.drain and bool(record.foreign))

    def drained_by_us(self) -> set[str]:
        """Workers that would serve, had the operator not drained them to replace or remove them."""
        return {
            pod.name
            for pod in self._counted()
            if self.serves(pod)
            and (record := self.records.get(pod.slurm)) is not None
            and record.drain
            and "pending termination" in record.reason
        }

    def out_for_update(self) -> set[str]:
        """Those of them that leave for an update."""
        return {
            name
            for name in self.drained_by_us()
            if self.pods[name].annotations.get(keys.ANNOTATION_POD_CORDON_CAUSE) == Cause.UPDATE.value
        }
