"""Templates for child objects, as the user may give them."""

from typing import Annotated

import msgspec

from coil.api.meta import Condition, JsonObject, Metadata
from coil.api.wire import Wire, doc

EXTERNAL_RULES = (
    ("!self.external ? has(self.slurmKeyRef) : true", "slurmKeyRef is required unless external is true"),
    (
        "!self.external ? has(self.jwtKeyRef) || has(self.jwtHs256KeyRef) : true",
        "jwtKeyRef is required unless external is true",
    ),
    ("self.external ? has(self.externalConfig) : true", "externalConfig is required when external is true"),
)
"""What a daemon inside, and one outside Kubernetes needs (CEL rule and message)."""


class PodTemplate(Wire, frozen=True, kw_only=True):
    """What to merge over the pod template that the operator builds."""

    metadata: Annotated[Metadata, doc("Labels and annotations for the workload and its pods.")] = (
        msgspec.field(default_factory=Metadata)
    )
    spec: Annotated[JsonObject, doc("PodSpec (core/v1) merged over the one that the operator builds.")] = {}


class ServiceTemplate(Wire, frozen=True, kw_only=True):
    """What to merge over the Service that the operator builds."""

    metadata: Annotated[Metadata, doc("Labels and annotations for the Service.")] = msgspec.field(
        default_factory=Metadata
    )
    node_port: Annotated[int, doc("Node port of the daemon's port; 0 or absent: chosen by Kubernetes.")] = 0
    port: Annotated[int, doc("Port of the Service; 0 or absent: the daemon's own port.")] = 0
    spec: Annotated[
        JsonObject,
        doc("ServiceSpec (core/v1) that the operator starts from. externalIPs is dropped."),
    ] = {}


class ExternalConfig(Wire, frozen=True, kw_only=True, gc=False):
    """Address of a daemon that runs outside Kubernetes."""

    host: Annotated[str, doc("Host name or address.", required=True)] = ""
    port: Annotated[int, doc("TCP port.", required=True)] = 0


class ConditionsStatus(Wire, frozen=True, kw_only=True):
    """Status of the kinds that report nothing but conditions."""

    conditions: Annotated[
        list[Condition],
        doc(
            "Latest observations, one of each type.",
            schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ] = []
