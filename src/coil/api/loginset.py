"""LoginSet: login pods of a cluster (spec: control-plane 8)."""

from typing import Annotated

import msgspec

from coil.api.meta import API_VERSION, JsonObject, LocalObjectReference, ObjectMeta, SecretKeySelector
from coil.api.template import ConditionsStatus, PodTemplate, ServiceTemplate
from coil.api.wire import Wire, doc


class RollingUpdateDeployment(Wire, frozen=True, kw_only=True, gc=False):
    """How far a roll may go from the wanted number of pods."""

    max_surge: Annotated[int | str | None, doc("Pods above the wanted number, absolute or in percent.")] = (
        None
    )
    max_unavailable: Annotated[int | str | None, doc("Pods that may be missing, absolute or in percent.")] = (
        None
    )


class DeploymentStrategy(Wire, frozen=True, kw_only=True):
    """How pods are replaced (apps/v1 DeploymentStrategy)."""

    rolling_update: Annotated[RollingUpdateDeployment | None, doc("Limits of a rolling update.")] = None
    type: Annotated[str, doc("Recreate or RollingUpdate.")] = ""


class LoginSetSpec(Wire, frozen=True, kw_only=True):
    """The wanted login pods."""

    controller_ref: Annotated[
        LocalObjectReference,
        doc("Controller of the same namespace. Immutable.", required=True),
    ] = msgspec.field(default_factory=LocalObjectReference)
    extra_sshd_config: Annotated[str, doc("Lines appended to sshd_config.")] = ""
    initconf: Annotated[
        JsonObject,
        doc("Container (core/v1) merged over the one that prepares /etc/slurm."),
    ] = {}
    login: Annotated[JsonObject, doc("Container (core/v1) merged over login; gives the image.")] = {}
    replicas: Annotated[
        int, doc("Number of login pods.", server_default=True, schema={"format": "int32"})
    ] = 1
    root_ssh_authorized_keys: Annotated[str, doc("Content of root's authorized_keys.")] = ""
    service: Annotated[ServiceTemplate, doc("Service for clients, port 22.")] = msgspec.field(
        default_factory=ServiceTemplate
    )
    sssd_conf_ref: Annotated[SecretKeySelector, doc("sssd.conf, which names the users.", required=True)] = (
        msgspec.field(default_factory=SecretKeySelector)
    )
    strategy: Annotated[DeploymentStrategy | None, doc("How pods are replaced.")] = None
    template: Annotated[PodTemplate, doc("Merged over the pod template of the login pods.")] = msgspec.field(
        default_factory=PodTemplate
    )


class LoginSetStatus(ConditionsStatus, frozen=True, kw_only=True):
    """What was observed of the login pods."""

    replicas: Annotated[int, doc("Pods of the Deployment.", schema={"format": "int32"})] = 0
    selector: Annotated[str, doc("Selects the pods; for the scale subresource.", required=True)] = ""


class LoginSet(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Pods where users log in to work with a cluster."""

    api_version: str = API_VERSION
    kind: str = "LoginSet"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Annotated[LoginSetSpec, doc("The wanted login pods.")] = msgspec.field(default_factory=LoginSetSpec)
    status: Annotated[LoginSetStatus, doc("What was observed.")] = msgspec.field(
        default_factory=LoginSetStatus
    )
