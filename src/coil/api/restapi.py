"""RestApi: slurmrestd in front of a cluster (spec: control-plane 7)."""

from typing import Annotated

import msgspec

from coil.api.meta import API_VERSION, JsonObject, LocalObjectReference, ObjectMeta
from coil.api.template import ConditionsStatus, PodTemplate, ServiceTemplate
from coil.api.wire import Wire, doc


class RestApiSpec(Wire, frozen=True, kw_only=True):
    """The wanted slurmrestd."""

    controller_ref: Annotated[
        LocalObjectReference, doc("Controller of the same namespace.", required=True)
    ] = msgspec.field(default_factory=LocalObjectReference)
    replicas: Annotated[
        int, doc("Number of slurmrestd pods.", server_default=True, schema={"format": "int32"})
    ] = 1
    service: Annotated[ServiceTemplate, doc("Service for clients, port 6820.")] = msgspec.field(
        default_factory=ServiceTemplate
    )
    slurmrestd: Annotated[
        JsonObject, doc("Container (core/v1) merged over slurmrestd; gives the image.")
    ] = {}
    template: Annotated[PodTemplate, doc("Merged over the pod template of slurmrestd.")] = msgspec.field(
        default_factory=PodTemplate
    )


class RestApi(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The REST service of a cluster. The operator itself talks to Slurm through it."""

    api_version: str = API_VERSION
    kind: str = "RestApi"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Annotated[RestApiSpec, doc("The wanted slurmrestd.")] = msgspec.field(default_factory=RestApiSpec)
    status: Annotated[ConditionsStatus, doc("What was observed.")] = msgspec.field(
        default_factory=ConditionsStatus
    )
