"""What one pass knows: the NodeSet, its workers, and what Slurm has said about them.

Slurm knowledge is explicit: `Known` holds a whole node list, `Unknown` says why there is none, and a
worker is registered, absent or unknown. No rule can mistake silence for an answer (invariant I2).
"""

import enum
import math
from collections.abc import Iterable, Mapping

import msgspec

from coil.api import keys
from coil.api.nodeset import NodeSet
from coil.kinds.nodeset.eligibility import Placement
from coil.kube.views import ContainerStatusView, ManifestView, NodeView, PodView
from coil.slurm.wire import SlurmJob, SlurmNode


class Registration(enum.Enum):
    """What Slurm has said about a worker's node."""

    REGISTERED = "registered"
    ABSENT = "absent"
    """A whole list of nodes was read and the node is not in it."""
    UNKNOWN = "unknown"


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Slurm has answered; what it said about a worker is with the worker."""

    observed_at: float
    """When the read began, UNIX seconds."""
    fresh: bool
    """The read began after this pass did, so that it shows everything earlier passes wrote."""
    node_count: int
    """Nodes in the list, those of other NodeSets included."""
    peer: str = ""
    """Who answered, for people: release and API version."""
    doubt: str = ""
    """Why nodes or jobs may be missing from the answer; then what is missing means nothing."""


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """No answer, and why."""

    reason: str
    """CamelCase, for conditions."""
    message: str
    not_yet: bool = False
    """The operator was just started, and an answer may come in a moment: nothing new is told meanwhile."""


Slurm = Known | Unknown


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Why something that the NodeSet needs cannot be had; for conditions and events."""

    reason: str
    """CamelCase."""
    message: str


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of the NodeSet, with its Slurm node and its Kubernetes node.

    What rules ask of every pod many times in a pass is a field, found out once.
    """

    pod: PodView
    slurm_name: str
    terminating: bool
    """Deletion has begun."""
    healthy: bool
    """Running, ready and not terminating."""
    ready_since: float
    """UNIX seconds at which the pod turned ready; the zero time when it is not."""
    ordinal: int = -1
    registration: Registration = Registration.UNKNOWN
    record: SlurmNode | None = None
    free: bool = False
    """Slurm has positively said that the node is drained and that no job is on it."""
    jobs: tuple[SlurmJob, ...] = ()
    """Jobs that hold the node, suspended ones included."""
    deadline: int | None = None
    """When the last running job must have ended, UNIX seconds; None without any."""
    host: NodeView | None = None
    registered_as: str = ""
    """Another record that may be this pod's; looked for when its own name is not registered."""
    absent_for: float = 0.0
    """Seconds for which Slurm has listed other nodes but not this one, in all passes of this process."""
    idle_for: float = math.inf
    """Seconds since the last job left the node, if it is idle; without end when Slurm knows of none."""
    shared: bool = False
    """Another pod that has not ended has this Slurm name too: the record may be that one's."""

    @property
    def name(self) -> str:
        """Name of the pod."""
        return self.pod.metadata.name

    @property
    def uid(self) -> str:
        """Which incarnation of the pod this is."""
        return self.pod.metadata.uid

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations of the pod."""
        return self.pod.metadata.annotations

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of the pod."""
        return self.pod.metadata.labels

    @property
    def speaks_for_record(self) -> bool:
        """The record is this very pod's: it is up, and no other pod has its name."""
        return self.record is not None and self.healthy and not self.shared

    @property
    def finished(self) -> bool:
        """All containers ended; the pod will never run again."""
        return self.pod.status.phase in ("Failed", "Succeeded")

    @property
    def never_ran(self) -> bool:
        """No slurmd ever ran in this pod: unscheduled, or the kubelet says that slurmd still waits."""
        if self.pod.status.phase not in ("", "Pending"):
            return False
        if not self.pod.spec.node_name:
            return True
        status = self._slurmd_status()
        return status is not None and status.state.waiting is not None and status.restart_count == 0

    def available(self, min_ready_seconds: int, now: float) -> bool:
        """Ready, and for at least so long."""
        return self.pod.ready and (min_ready_seconds == 0 or self.ready_since + min_ready_seconds <= now)

    def _slurmd_status(self) -> ContainerStatusView | None:
        statuses = self.pod.status.container_statuses
        return next((status for status in statuses if status.name == keys.SLURMD), None)


def mostly_absent(workers: Iterable[Worker]) -> bool:
    """Half of the ready workers, and more than one, are not in Slurm's list: it may have lost its state."""
    ready = [worker for worker in workers if worker.healthy]
    absent = sum(worker.registration is Registration.ABSENT for worker in ready)
    return 2 * absent > len(ready) or (absent > 1 and 2 * absent == len(ready))


class Held(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=False):
    """What people said about workers whose pods are gone."""

    drains: Mapping[str, str] = {}
    """Reason with which somebody holds a Slurm node, by its name."""
    cordons: Mapping[str, str] = {}
    """Uid of the pod that a user cordoned, by the place that its successor takes."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a plan may look at."""

    nodeset: NodeSet
    revision: str
    """Hash of the revision that pods should have."""
    workers: tuple[Worker, ...] = ()
    slurm: Slurm
    mostly_absent: bool = False
    """See `mostly_absent`."""
    settled: bool = True
    """The caches have seen the creations and deletions of earlier passes."""
    under_way: frozenset[str] = frozenset()
    """Uids of pods whose cached state does not show what earlier passes did to them."""
    fault: Fault | None = None
    """Why no pod can be built now."""
    ghosts: tuple[SlurmNode, ...] = ()
    """Slurm nodes that Slurm has given up; empty where they are to be kept."""
    nodes: tuple[NodeView, ...] = ()
    """All Kubernetes nodes; empty where nothing depends on them."""
    placement: Placement | None = None
    """Where pods of the current template may run; None when no pod can be built."""
    held: Held = Held()
    """See `held`."""
    claims: Mapping[str, ManifestView] = {}
    """Volume claims that the pods name, by name; empty without claim templates."""
    placed: Mapping[str, tuple[str, str]] = {}
    """By uid of the pod: the topology that was written for it, and what Slurm showed before."""
    commented_at: float = 0.0
    """When comments were last written, UNIX seconds."""
    propagated_conditions: tuple[str, ...] = ()
    """Types of Kubernetes node conditions that become drain reasons."""

    @property
    def known(self) -> bool:
        """Slurm has answered."""
        return isinstance(self.slurm, Known)

    @property
    def whole(self) -> bool:
        """Slurm has answered and left nothing out."""
        return isinstance(self.slurm, Known) and not self.slurm.doubt
