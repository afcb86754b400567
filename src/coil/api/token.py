"""Token: a Slurm token kept fresh in a Secret (spec: control-plane 9)."""

from typing import Annotated, ClassVar

import msgspec

from coil.api.durations import parse_duration
from coil.api.meta import API_VERSION, JsonObject, ObjectMeta, SecretKeySelector
from coil.api.template import ConditionsStatus
from coil.api.wire import Wire, doc, rules

DEFAULT_LIFETIME_S = 15 * 60
MAX_LIFETIME_S = 2**31 - 2
"""Slurm's "infinite" is one second more (spec: control-plane 9.1)."""
DEFAULT_SECRET_KEY = "SLURM_JWT"  # noqa: S105 -- the name of a key, no secret


class TokenSpec(Wire, frozen=True, kw_only=True):
    """The wanted token."""

    schema: ClassVar[JsonObject] = rules(
        ("has(self.jwtKeyRef) || has(self.jwtHs256KeyRef)", "jwtKeyRef is required")
    )

    jwt_hs256_key_ref: Annotated[
        SecretKeySelector | None, doc("Deprecated name of jwtKeyRef, which wins.")
    ] = None
    jwt_key_ref: Annotated[SecretKeySelector | None, doc("HS256 key that signs the token. Immutable.")] = None
    lifetime: Annotated[str, doc("How long a token is valid, such as 1h30m; absent: 15m.")] = ""
    refresh: Annotated[
        bool, doc("Renew the token before it expires; false: the Secret is immutable.", server_default=True)
    ] = True
    secret_ref: Annotated[
        SecretKeySelector | None,
        doc("Where to put the token; absent: <name>-jwt-<username>, key SLURM_JWT."),
    ] = None
    username: Annotated[str, doc("Slurm user that the token speaks for.", required=True)] = ""


class TokenStatus(ConditionsStatus, frozen=True, kw_only=True):
    """What was observed of the token."""

    issued_at: Annotated[
        str | None, doc("When the stored token was issued.", schema={"format": "date-time"})
    ] = None


class Token(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A token for one Slurm user, kept fresh in a Secret."""

    api_version: str = API_VERSION
    kind: str = "Token"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Annotated[TokenSpec, doc("The wanted token.")] = msgspec.field(default_factory=TokenSpec)
    status: Annotated[TokenStatus, doc("What was observed.")] = msgspec.field(default_factory=TokenStatus)

    @property
    def jwt_ref(self) -> SecretKeySelector | None:
        """The signing key in effect."""
        return self.spec.jwt_key_ref or self.spec.jwt_hs256_key_ref

    @property
    def lifetime_s(self) -> float:
        """Lifetime in seconds, within what Slurm can hold.

        Raises:
            ValueError: `spec.lifetime` is no duration.
        """
        if not self.spec.lifetime:
            return DEFAULT_LIFETIME_S
        return min(max(parse_duration(self.spec.lifetime), 0), MAX_LIFETIME_S)
