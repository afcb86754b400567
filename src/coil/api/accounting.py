"""Accounting: a slurmdbd (spec: control-plane 6)."""

from typing import Annotated, ClassVar

import msgspec

from coil.api.meta import API_VERSION, ConfigMapKeySelector, JsonObject, ObjectMeta, SecretKeySelector
from coil.api.template import EXTERNAL_RULES, ConditionsStatus, ExternalConfig, PodTemplate, ServiceTemplate
from coil.api.wire import Wire, doc, rules


class StorageConfig(Wire, frozen=True, kw_only=True):
    """The database of slurmdbd."""

    database: Annotated[str, doc("Name of the database.", server_default=True)] = "slurm_acct_db"
    host: Annotated[str, doc("Host of the database server.", required=True)] = ""
    password_key_ref: Annotated[SecretKeySelector, doc("Password of the database user.", required=True)] = (
        msgspec.field(default_factory=SecretKeySelector)
    )
    port: Annotated[int, doc("Port of the database server.", server_default=True)] = 3306
    username: Annotated[str, doc("Database user.")] = ""


class AccountingSpec(Wire, frozen=True, kw_only=True):
    """The wanted slurmdbd."""

    schema: ClassVar[JsonObject] = rules(*EXTERNAL_RULES)

    external: Annotated[bool, doc("slurmdbd runs outside Kubernetes.", server_default=True)] = False
    external_config: Annotated[
        ExternalConfig | None, doc("Where the external slurmdbd listens; needed when external.")
    ] = None
    extra_conf: Annotated[str, doc("Lines appended to slurmdbd.conf.")] = ""
    jwks_key_ref: Annotated[ConfigMapKeySelector | None, doc("JWKS of further token issuers.")] = None
    jwt_hs256_key_ref: Annotated[
        SecretKeySelector | None, doc("Deprecated name of jwtKeyRef, which wins.")
    ] = None
    jwt_key_ref: Annotated[SecretKeySelector | None, doc("HS256 key of auth/jwt. Immutable.")] = None
    service: Annotated[ServiceTemplate, doc("Service for clients, port 6819.")] = msgspec.field(
        default_factory=ServiceTemplate
    )
    slurm_key_ref: Annotated[SecretKeySelector | None, doc("Key of auth/slurm.")] = None
    slurmdbd: Annotated[JsonObject, doc("Container (core/v1) merged over slurmdbd; gives the image.")] = {}
    storage_config: Annotated[StorageConfig | None, doc("The database.")] = None
    template: Annotated[PodTemplate, doc("Merged over the pod template of slurmdbd.")] = msgspec.field(
        default_factory=PodTemplate
    )


class Accounting(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A slurmdbd, shared by the clusters that refer to it."""

    api_version: str = API_VERSION
    kind: str = "Accounting"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Annotated[AccountingSpec, doc("The wanted slurmdbd.")] = msgspec.field(
        default_factory=AccountingSpec
    )
    status: Annotated[ConditionsStatus, doc("What was observed.")] = msgspec.field(
        default_factory=ConditionsStatus
    )

    @property
    def jwt_ref(self) -> SecretKeySelector | None:
        """The auth/jwt key in effect (spec: control-plane 6.1)."""
        return self.spec.jwt_key_ref or self.spec.jwt_hs256_key_ref
