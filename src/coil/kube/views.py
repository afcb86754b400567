"""Core Kubernetes objects, reduced to the members coil reads.

The stores hold thousands of these: a member costs memory and decoding time, so each one here has
a reader. Leaves are `gc=False`: they hold no cycles and the collector need not visit them.
Member meanings: Kubernetes API reference. Absent members have the API's zero values.
"""

import msgspec

from coil.support.objects import JsonObject, ObjectMeta


class Leaf(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of members that only hold scalars or other leaves."""


class View(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of objects and of members that hold lists or maps."""


class ConditionView(Leaf, frozen=True, kw_only=True):
    """A condition of a pod or node."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


def _of_type(conditions: tuple[ConditionView, ...], kind: str) -> ConditionView | None:
    for condition in conditions:  # a plain loop: asked for each pod in each pass
        if condition.type == kind:
            return condition
    return None


class ClaimSource(Leaf, frozen=True, kw_only=True):
    """A volume's claim."""

    claim_name: str


class VolumeView(Leaf, frozen=True, kw_only=True):
    """A volume of a pod; other sources than a claim are not kept."""

    name: str
    persistent_volume_claim: ClaimSource | None = None


class SelectorTermPart(View, frozen=True, kw_only=True):
    """One requirement of a node selector term."""

    key: str
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(View, frozen=True, kw_only=True):
    """Only field matches are kept: they are how a daemon pod is bound to its node."""

    match_fields: tuple[SelectorTermPart, ...] = ()


class NodeSelectorView(View, frozen=True, kw_only=True):
    """The terms, any of which must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinityView(View, frozen=True, kw_only=True):
    """The required part of a node affinity."""

    required: NodeSelectorView | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )


class AffinityView(View, frozen=True, kw_only=True):
    """The node part of a pod's affinity."""

    node_affinity: NodeAffinityView | None = None


class PodSpecView(View, frozen=True, kw_only=True):
    """spec of a pod."""

    node_name: str = ""
    hostname: str = ""
    host_network: bool = False
    volumes: tuple[VolumeView, ...] = ()
    affinity: AffinityView | None = None


class WaitingView(Leaf, frozen=True, kw_only=True):
    """Why a container does not run yet, such as ImagePullBackOff."""

    reason: str = ""
    message: str = ""


class TerminatedView(Leaf, frozen=True, kw_only=True):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""


class ContainerStateView(Leaf, frozen=True, kw_only=True):
    """A container's state; a running one has neither member."""

    waiting: WaitingView | None = None
    terminated: TerminatedView | None = None


_RUNNING = ContainerStateView()


class ContainerStatusView(Leaf, frozen=True, kw_only=True):
    """Status of one container."""

    name: str
    image: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerStateView = _RUNNING


class PodStatusView(View, frozen=True, kw_only=True):
    """status of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    conditions: tuple[ConditionView, ...] = ()
    init_container_statuses: tuple[ContainerStatusView, ...] = ()
    container_statuses: tuple[ContainerStatusView, ...] = ()

    def condition(self, kind: str) -> ConditionView | None:
        """The condition of that type, if the pod has it."""
        return _of_type(self.conditions, kind)


class PodView(View, frozen=True, kw_only=True):
    """A pod."""

    metadata: ObjectMeta
    spec: PodSpecView = PodSpecView()
    status: PodStatusView = PodStatusView()

    @property
    def terminating(self) -> bool:
        """Deletion has begun and cannot be taken back."""
        return self.metadata.deletion_timestamp is not None

    @property
    def ready(self) -> bool:
        """The kubelet says that all containers pass their readiness probes."""
        ready = self.status.condition("Ready")
        return ready is not None and ready.status == "True"

    @property
    def pinned_node(self) -> str:
        """The one node that a required field match on metadata.name binds the pod to, or ''."""
        affinity = self.spec.affinity and self.spec.affinity.node_affinity
        if not affinity or not affinity.required:
            return ""
        for term in affinity.required.node_selector_terms:
            for part in term.match_fields:
                if part.key == "metadata.name" and part.operator == "In" and len(part.values) == 1:
                    return part.values[0]
        return ""


class TaintView(Leaf, frozen=True, kw_only=True):
    """A taint of a node."""

    key: str
    value: str = ""
    effect: str = ""


class NodeSpecView(View, frozen=True, kw_only=True):
    """spec of a node."""

    unschedulable: bool = False
    taints: tuple[TaintView, ...] = ()


class NodeStatusView(View, frozen=True, kw_only=True):
    """status of a node."""

    conditions: tuple[ConditionView, ...] = ()

    def condition(self, kind: str) -> ConditionView | None:
        """The condition of that type, if the node has it."""
        return _of_type(self.conditions, kind)


class NodeView(View, frozen=True, kw_only=True):
    """A node."""

    metadata: ObjectMeta
    spec: NodeSpecView = NodeSpecView()
    status: NodeStatusView = NodeStatusView()


class SecretView(View, frozen=True, kw_only=True):
    """A Secret; values are decoded from base64."""

    metadata: ObjectMeta
    type: str = ""
    immutable: bool = False
    data: dict[str, bytes] = {}


class ConfigMapView(View, frozen=True, kw_only=True):
    """A ConfigMap."""

    metadata: ObjectMeta
    immutable: bool = False
    data: dict[str, str] = {}
    binary_data: dict[str, bytes] = {}


class ManifestView(View, frozen=True, kw_only=True):
    """A child object whose spec coil compares with what it built, member by member.

    List replies leave `apiVersion` and `kind` out of their items; the client puts them back.
    """

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta
    spec: JsonObject = {}
    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}
    immutable: bool = False
    type: str = ""
    status: JsonObject = {}


class LeaseSpecView(Leaf, frozen=True, kw_only=True):
    """spec of a Lease; times are MicroTime text."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class LeaseView(View, frozen=True, kw_only=True):
    """A Lease."""

    metadata: ObjectMeta
    spec: LeaseSpecView = LeaseSpecView()


class MetadataView(View, frozen=True, kw_only=True):
    """Any object of which only the metadata matters."""

    metadata: ObjectMeta
