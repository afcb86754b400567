"""NodeSet: worker pods that register as Slurm nodes (spec: nodeset 2)."""

from typing import Annotated, ClassVar, Literal

import msgspec

from coil.api.durations import parse_duration
from coil.api.meta import (
    API_VERSION,
    JsonObject,
    LocalObjectReference,
    ObjectKey,
    ObjectMeta,
    SecretKeySelector,
)
from coil.api.template import ConditionsStatus, PodTemplate
from coil.api.wire import Nullable, Wire, doc, rules

ScalingMode = Literal["DaemonSet", "StatefulSet"]
Retention = Literal["Retain", "Delete"]
_INT32 = {"format": "int32"}


class Partition(Wire, frozen=True, kw_only=True, gc=False):
    """A partition of the nodes of this set."""

    config: Annotated[
        str,
        doc("Parameters of the partition line, such as MaxTime=UNLIMITED.", schema={"pattern": r"^[^\n]+$"}),
    ] = ""
    enabled: Annotated[bool, doc("Make the partition.", server_default=True, required=True)] = False


class ClaimRetention(Wire, frozen=True, kw_only=True, gc=False):
    """What becomes of claims made from volumeClaimTemplates."""

    when_deleted: Annotated[Retention, doc("When the NodeSet is deleted.", server_default=True)] = "Retain"
    when_scaled: Annotated[Retention, doc("When a pod is scaled in.", server_default=True)] = "Retain"


class Ssh(Wire, frozen=True, kw_only=True):
    """Login to workers, for users with a job there."""

    enabled: Annotated[bool, doc("Run sshd in worker pods.", server_default=True, required=True)] = False
    extra_sshd_config: Annotated[str, doc("Lines appended to sshd_config.")] = ""
    sssd_conf_ref: Annotated[SecretKeySelector, doc("sssd.conf, which names the users.", required=True)] = (
        msgspec.field(default_factory=SecretKeySelector)
    )


class RollingUpdate(Wire, frozen=True, kw_only=True, gc=False):
    """Limits of a rolling update."""

    max_unavailable: Annotated[
        int | str,
        doc(
            "Workers that may be missing during a roll, absolute or in percent, rounded up.",
            server_default=True,
        ),
    ] = "25%"


class ScheduledUpdate(Wire, frozen=True, kw_only=True):
    """An update inside a Slurm maintenance reservation."""

    duration: Annotated[str, doc("Length of the reservation, at least 1m.", server_default=True)] = "30m"
    flags: Annotated[Nullable[list[str]], doc("Further reservation flags.")] = []
    start_time: Annotated[
        str | None, doc("Start of the reservation (RFC 3339).", schema={"format": "date-time"})
    ] = None

    @property
    def duration_s(self) -> float:
        """Length in seconds.

        Raises:
            ValueError: `duration` is no duration.
        """
        return parse_duration(self.duration)


class UpdateStrategy(Wire, frozen=True, kw_only=True):
    """How a changed template reaches the workers."""

    schema: ClassVar[JsonObject] = rules(
        (
            (
                "self.type != 'ScheduledUpdate'"
                " || (has(self.scheduledUpdate.startTime) && has(self.scheduledUpdate.duration))"
            ),
            "type ScheduledUpdate needs scheduledUpdate.startTime and scheduledUpdate.duration",
        )
    )

    rolling_update: Annotated[RollingUpdate, doc("For type RollingUpdate.")] = msgspec.field(
        default_factory=RollingUpdate
    )
    scheduled_update: Annotated[ScheduledUpdate | None, doc("For type ScheduledUpdate.")] = None
    type: Annotated[
        Literal["RollingUpdate", "OnDelete", "ScheduledUpdate"],
        doc(
            "Replace workers by and by, when somebody deletes them, or in a reservation.", server_default=True
        ),
    ] = "RollingUpdate"


class NodeSetSpec(Wire, frozen=True, kw_only=True):
    """The wanted workers."""

    controller_ref: Annotated[
        LocalObjectReference,
        doc("Controller of the same namespace. Immutable.", required=True),
    ] = msgspec.field(default_factory=LocalObjectReference)
    extra_conf: Annotated[str, doc("Parameters of the Slurm nodes: Key=Value, separated by spaces.")] = ""
    logfile: Annotated[
        JsonObject, doc("Container (core/v1) merged over the sidecar that prints the log.")
    ] = {}
    min_ready_seconds: Annotated[
        int, doc("Seconds that a pod must be ready to count as available.", schema=_INT32)
    ] = 0
    ordinal_padding: Annotated[
        int, doc("Digits of the ordinal in pod names, filled with zeros; 0: none.", server_default=True)
    ] = 0
    oversubscribe_node: Annotated[
        bool, doc("Allow several workers on one Kubernetes node (for tests).", server_default=True)
    ] = False
    partition: Annotated[Partition, doc("A partition of the nodes of this set.")] = msgspec.field(
        default_factory=Partition
    )
    persistent_volume_claim_retention_policy: Annotated[
        ClaimRetention, doc("What becomes of claims made from volumeClaimTemplates.")
    ] = msgspec.field(default_factory=ClaimRetention)
    pin_to_node: Annotated[
        bool, doc("Bring a worker back to the Kubernetes node it ran on.", server_default=True)
    ] = False
    prune_slurm_node_records: Annotated[
        Literal["Never", "NodeNotFound"],
        doc("Delete Slurm's records of workers that are gone for good.", server_default=True),
    ] = "Never"
    replicas: Annotated[
        int, doc("Number of workers; for scalingMode StatefulSet.", server_default=True, schema=_INT32)
    ] = 1
    revision_history_limit: Annotated[
        int, doc("Old ControllerRevisions to keep.", server_default=True, schema=_INT32)
    ] = 0
    scaling_mode: Annotated[
        ScalingMode,
        doc("StatefulSet: a number of workers; DaemonSet: one on each matching node.", server_default=True),
    ] = "StatefulSet"
    slurmd: Annotated[JsonObject, doc("Container (core/v1) merged over slurmd; gives the image.")] = {}
    ssh: Annotated[Ssh, doc("Login to workers.")] = msgspec.field(default_factory=Ssh)
    template: Annotated[PodTemplate, doc("Merged over the pod template of the workers.")] = msgspec.field(
        default_factory=PodTemplate
    )
    update_strategy: Annotated[UpdateStrategy, doc("How a changed template reaches the workers.")] = (
        msgspec.field(default_factory=UpdateStrategy)
    )
    volume_claim_templates: Annotated[
        Nullable[list[JsonObject]],
        doc("PersistentVolumeClaims (core/v1) made for each worker. Immutable."),
    ] = []
    workload_disruption_protection: Annotated[
        bool, doc("Protect workers that run jobs from eviction.", server_default=True)
    ] = True


class NodeSetStatus(ConditionsStatus, frozen=True, kw_only=True):
    """What was observed of the workers (spec: nodeset 2.3)."""

    available_replicas: Annotated[int, doc("Ready for minReadySeconds.", schema=_INT32)] = 0
    collision_count: Annotated[int | None, doc("Collisions of revision hashes so far.", schema=_INT32)] = None
    desired: Annotated[int, doc("Workers that should exist.", schema=_INT32)] = 0
    node_set_hash: Annotated[str, doc("Hash of the current revision.", required=True)] = ""
    observed_generation: Annotated[
        int, doc("metadata.generation that this status describes.", schema={"format": "int64"})
    ] = 0
    ordinal_to_node: Annotated[Nullable[dict[str, str]], doc("Kubernetes node of each pinned ordinal.")] = {}
    ready_replicas: Annotated[int, doc("Running and ready.", schema=_INT32)] = 0
    replicas: Annotated[int, doc("Pods that exist.", schema=_INT32)] = 0
    selector: Annotated[str, doc("Selects the pods; for the scale subresource.", required=True)] = ""
    slurm_allocated: Annotated[int, doc("Slurm nodes that run jobs.", schema=_INT32)] = 0
    slurm_down: Annotated[int, doc("Slurm nodes that are down.", schema=_INT32)] = 0
    slurm_drain: Annotated[int, doc("Slurm nodes marked to drain.", schema=_INT32)] = 0
    slurm_idle: Annotated[int, doc("Slurm nodes without jobs.", schema=_INT32)] = 0
    unavailable_replicas: Annotated[int, doc("Wanted and not available.", schema=_INT32)] = 0
    updated_replicas: Annotated[int, doc("Pods of the current revision.", schema=_INT32)] = 0


class NodeSet(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A set of worker pods that register as Slurm nodes."""

    api_version: str = API_VERSION
    kind: str = "NodeSet"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Annotated[NodeSetSpec, doc("The wanted workers.")] = msgspec.field(default_factory=NodeSetSpec)
    status: Annotated[NodeSetStatus, doc("What was observed.")] = msgspec.field(default_factory=NodeSetStatus)

    @property
    def controller_key(self) -> ObjectKey:
        """Key of the Controller, which lives in the same namespace."""
        return ObjectKey(self.metadata.namespace, self.spec.controller_ref.name)

    @property
    def template_hostname(self) -> str:
        """`template.spec.hostname`, the prefix of host names; empty when not set."""
        hostname = self.spec.template.spec.get("hostname")
        return hostname if isinstance(hostname, str) else ""

    @property
    def slurm_name(self) -> str:
        """Name of the Slurm NodeSet, partition and feature (spec: nodeset 4.5)."""
        words = self.template_hostname.split()
        return words[0].strip("-") if words else self.metadata.name

    @property
    def daemon(self) -> bool:
        """Whether there is one worker on each matching Kubernetes node."""
        return self.spec.scaling_mode == "DaemonSet"
