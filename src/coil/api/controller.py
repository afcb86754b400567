"""Controller: a slurmctld, and with it a Slurm cluster (spec: control-plane 4)."""

from typing import Annotated, ClassVar

import msgspec

from coil.api.meta import (
    API_VERSION,
    ConfigMapKeySelector,
    JsonObject,
    LocalObjectReference,
    ObjectMeta,
    SecretKeySelector,
)
from coil.api.storage import Persistence
from coil.api.template import EXTERNAL_RULES, ConditionsStatus, ExternalConfig, PodTemplate, ServiceTemplate
from coil.api.wire import Nullable, Wire, doc, rules

_DURATION = "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"
Duration = Annotated[str, msgspec.Meta(extra={"schema": {"pattern": _DURATION}})]
"""A Prometheus duration such as `30s`."""


class HighAvailability(Wire, frozen=True, kw_only=True, gc=False):
    """Backup controllers."""

    backups: Annotated[
        int, doc("Number of backups.", server_default=True, schema={"format": "int32", "minimum": 1})
    ] = 1
    enabled: Annotated[bool, doc("Run backup controllers.", server_default=True, required=True)] = False


class Endpoint(Wire, frozen=True, kw_only=True, gc=False):
    """One metrics path of slurmctld to scrape."""

    interval: Annotated[Duration, doc("Time between scrapes; absent: the monitor's.")] = ""
    path: Annotated[str, doc("HTTP path.", required=True)] = ""
    scrape_timeout: Annotated[Duration, doc("Time after which a scrape fails.")] = ""


class ServiceMonitor(Wire, frozen=True, kw_only=True):
    """A ServiceMonitor (monitoring.coreos.com) for slurmctld."""

    annotations: Annotated[Nullable[dict[str, str]], doc("Annotations of the ServiceMonitor.")] = {}
    enabled: Annotated[bool, doc("Create the ServiceMonitor.", server_default=True)] = False
    endpoints: Annotated[Nullable[list[Endpoint]], doc("Paths to scrape, in place of the default four.")] = []
    interval: Annotated[Duration, doc("Time between scrapes.")] = ""
    labels: Annotated[Nullable[dict[str, str]], doc("Labels of the ServiceMonitor.")] = {}
    scrape_timeout: Annotated[Duration, doc("Time after which a scrape fails.")] = ""


class Metrics(Wire, frozen=True, kw_only=True):
    """Metrics of slurmctld in OpenMetrics format."""

    enabled: Annotated[bool, doc("Let slurmctld serve metrics.", server_default=True)] = False
    service_monitor: Annotated[
        ServiceMonitor | None, doc("How Prometheus finds them.", schema={"nullable": True})
    ] = None


class ControllerSpec(Wire, frozen=True, kw_only=True):
    """The wanted slurmctld."""

    schema: ClassVar[JsonObject] = rules(
        *EXTERNAL_RULES,
        (
            (
                "has(self.ha) && self.ha.enabled ? has(self.persistence) && self.persistence.enabled"
                " && self.persistence.existingClaim.size() > 0 : true"
            ),
            "ha.enabled needs persistence.enabled and persistence.existingClaim",
        ),
    )

    accounting_ref: Annotated[LocalObjectReference | None, doc("Accounting of the same namespace.")] = None
    cluster_name: Annotated[
        str, doc("Slurm ClusterName, at most 40 characters, immutable; absent: <namespace>_<name>.")
    ] = ""
    config_file_refs: Annotated[
        Nullable[list[LocalObjectReference]],
        doc("ConfigMaps whose keys become files in /etc/slurm, such as gres.conf."),
    ] = []
    epilog_script_refs: Annotated[
        Nullable[list[LocalObjectReference]], doc("ConfigMaps of scripts run on nodes after a job.")
    ] = []
    epilog_slurmctld_script_refs: Annotated[
        Nullable[list[LocalObjectReference]], doc("ConfigMaps of scripts run by slurmctld after a job.")
    ] = []
    external: Annotated[bool, doc("slurmctld runs outside Kubernetes.", server_default=True)] = False
    external_config: Annotated[
        ExternalConfig | None, doc("Where the external slurmctld listens; needed when external.")
    ] = None
    extra_conf: Annotated[str, doc("Lines appended to slurm.conf.")] = ""
    ha: Annotated[HighAvailability, doc("Backup controllers; needs a shared existing claim.")] = (
        msgspec.field(default_factory=HighAvailability)
    )
    inplace_reconfigure: Annotated[
        bool,
        doc(
            "Apply changed configuration through a sidecar in place of new pods.",
            server_default=True,
        ),
    ] = False
    jwks_key_ref: Annotated[ConfigMapKeySelector | None, doc("JWKS of further token issuers.")] = None
    jwt_hs256_key_ref: Annotated[
        SecretKeySelector | None, doc("Deprecated name of jwtKeyRef, which wins.")
    ] = None
    jwt_key_ref: Annotated[
        SecretKeySelector | None,
        doc("HS256 key of auth/jwt; also signs the operator's own tokens. Immutable."),
    ] = None
    logfile: Annotated[
        JsonObject, doc("Container (core/v1) merged over the sidecar that prints the log.")
    ] = {}
    metrics: Annotated[Metrics, doc("Metrics of slurmctld.")] = msgspec.field(default_factory=Metrics)
    persistence: Annotated[Persistence | None, doc("Claim for the state of slurmctld.")] = None
    prolog_script_refs: Annotated[
        Nullable[list[LocalObjectReference]], doc("ConfigMaps of scripts run on nodes before a job.")
    ] = []
    prolog_slurmctld_script_refs: Annotated[
        Nullable[list[LocalObjectReference]], doc("ConfigMaps of scripts run by slurmctld before a job.")
    ] = []
    reconfigure: Annotated[JsonObject, doc("Container (core/v1) merged over the reconfigure sidecar.")] = {}
    service: Annotated[ServiceTemplate, doc("Service for clients, port 6817.")] = msgspec.field(
        default_factory=ServiceTemplate
    )
    slurm_key_ref: Annotated[
        SecretKeySelector | None,
        doc("Key of auth/slurm; several in a key that ends in .jwks. The Secret's name is immutable."),
    ] = None
    slurmctld: Annotated[JsonObject, doc("Container (core/v1) merged over slurmctld; gives the image.")] = {}
    template: Annotated[PodTemplate, doc("Merged over the pod template of slurmctld.")] = msgspec.field(
        default_factory=PodTemplate
    )


class Controller(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A Slurm cluster: its slurmctld, configuration and keys."""

    api_version: str = API_VERSION
    kind: str = "Controller"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Annotated[ControllerSpec, doc("The wanted slurmctld.")] = msgspec.field(
        default_factory=ControllerSpec
    )
    status: Annotated[ConditionsStatus, doc("What was observed.")] = msgspec.field(
        default_factory=ConditionsStatus
    )

    @property
    def cluster_name(self) -> str:
        """Slurm ClusterName in effect (spec: control-plane 2.5)."""
        return self.spec.cluster_name or f"{self.metadata.namespace}_{self.metadata.name}"

    @property
    def jwt_ref(self) -> SecretKeySelector | None:
        """The auth/jwt key in effect (spec: control-plane 4)."""
        return self.spec.jwt_key_ref or self.spec.jwt_hs256_key_ref

    @property
    def persistence_enabled(self) -> bool:
        """Whether the state is on a claim; true when nothing is said."""
        return self.spec.persistence is None or self.spec.persistence.enabled

    @property
    def replicas(self) -> int:
        """Number of slurmctld pods: one, plus the backups (spec: control-plane 5.6)."""
        return 1 + self.spec.ha.backups if self.spec.ha.enabled else 1
