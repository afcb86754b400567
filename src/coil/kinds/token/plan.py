"""What a pass over a Token does, and why (spec: control-plane 9). Pure.

    plan = decide(snapshot, now)
    if plan.mint: text = a new token; the Secret becomes wanted(snapshot, text)

A new token is made when there is none, when 80 % of its life is over, and at once when it is not what the
Token asks for: signed with another key, for another user, of another lifetime. With `refresh: false` a token
is made once; what becomes of it is told in a condition.
"""

import base64

import msgspec

from coil.api import keys, names
from coil.api.token import Token
from coil.build import token as build
from coil.kinds.references import missing_key
from coil.kinds.steps import Failed
from coil.kube.views import SecretView
from coil.slurm.jwks import HS256, RS256, KeyFormatError, private_key
from coil.slurm.tokens import NOBODY, REFRESH_AT, Claims, TokenError, verify
from coil.support.objects import JsonObject

SECRET = "Secret"  # noqa: S105 -- the name of a step
REFRESH = "Refresh"

SOONEST_S = 1.0
"""Shortest time between two passes that wait for a token to age."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass goes by.

    Attributes:
        token: with the operator's defaults filled in.
        key_secret: the Secret with the signing key, if it exists.
        secret: the Secret with the token, if it exists.
        rival: an older Token that writes to the same key of the same Secret; empty when there is none.
        key_in_use: what slurmctld still takes although the Secret has another key; empty otherwise.
    """

    token: Token
    key_secret: SecretView | None = None
    secret: SecretView | None = None
    rival: str = ""
    key_in_use: bytes = b""

    @property
    def where(self) -> tuple[str, str]:
        """Name of the Secret that holds the token, and the key in it."""
        return names.token_secret(self.token)

    @property
    def signing_key(self) -> bytes:
        """The bytes that sign the token; empty while they are missing.

        slurmctld takes one key at a time: until it has the Secret's, only tokens of the former are good.
        """
        if self.key_in_use:
            return self.key_in_use
        ref = self.token.jwt_ref
        return self.key_secret.data.get(ref.key, b"") if ref is not None and self.key_secret else b""

    @property
    def algorithm(self) -> str:
        """How the token is signed."""
        return self.token.metadata.annotations.get(keys.ANNOTATION_JWT_ALGORITHM, HS256)

    @property
    def text(self) -> str:
        """What the Secret holds; empty while it holds nothing."""
        value = self.secret.data.get(self.where[1], b"") if self.secret is not None else b""
        return value.decode(errors="replace")

    @property
    def claims(self) -> Claims | None:
        """What the stored token says; None when there is none, or the key did not sign it."""
        try:
            return verify(self.signing_key, self.text, self.algorithm) if self.signing_key else None
        except (TokenError, KeyFormatError):
            return None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to do now and when to look again.

    Attributes:
        step: the step that is done, or failed.
        mint: why a new token is needed; empty when none is.
        problem: why none can be made; nothing is written.
        again_s: seconds until the next pass that time alone makes necessary; None: never.
    """

    step: str
    mint: str = ""
    problem: Failed | None = None
    again_s: float | None = None


def decide(snapshot: Snapshot, now: float) -> Plan:
    """What has to be done at `now` (Unix seconds)."""
    step = SECRET if snapshot.secret is None else REFRESH
    if (problem := _problem(snapshot, step)) is not None:
        return Plan(step=step, problem=problem)
    lifetime = snapshot.token.lifetime_s
    if snapshot.secret is not None and snapshot.secret.metadata.deletion_timestamp is not None:
        return Plan(step=step)  # its end brings the Token back
    if not snapshot.token.spec.refresh and snapshot.text:
        return Plan(step=step, again_s=_until_expiry(snapshot, now))
    why, again = _due(snapshot, now)
    if not why:
        return Plan(step=step, again_s=again)
    if (problem := _unwritable(snapshot, step)) is not None:
        return Plan(step=step, problem=problem)
    return Plan(step=step, mint=why, again_s=max(SOONEST_S, lifetime * REFRESH_AT))


def wanted(snapshot: Snapshot, text: str) -> JsonObject:
    """The Secret with the new token `text`; what else the live one holds stays.

    A Secret that holds something else too, made by somebody else, does not become the key's: it would be
    deleted with it.
    """
    if snapshot.key_secret is None:
        raise ValueError("there is no signing key, so nothing can have been signed")
    manifest = build.secret(snapshot.token, text, snapshot.key_secret.metadata)
    live, key = snapshot.secret, snapshot.where[1]
    if live is None:
        return manifest
    others = {name: value for name, value in live.data.items() if name != key}
    if others and not _ours(live):
        del manifest["metadata"]["ownerReferences"]
    return manifest | {"data": {name: base64.b64encode(value).decode() for name, value in others.items()}}


def _due(snapshot: Snapshot, now: float) -> tuple[str, float | None]:
    """Why a new token is needed, or the seconds until one is."""
    claims, spec, lifetime = snapshot.claims, snapshot.token.spec, snapshot.token.lifetime_s
    if not snapshot.text:
        return "there is no token", None
    if claims is None:
        return "the token is not signed with the key", None
    if claims.username != (spec.username or NOBODY):
        return "the user is another one", None
    if abs(claims.expires_at - claims.issued_at - lifetime) > 1:
        return "the lifetime is another one", None
    due = claims.expires_at - lifetime * (1 - REFRESH_AT)
    if now >= due:
        return "80 % of its life is over", None
    return "", min(max(SOONEST_S, due - now), lifetime)


def _until_expiry(snapshot: Snapshot, now: float) -> float | None:
    claims = snapshot.claims
    if claims is None or claims.expired(now):
        return None
    return max(SOONEST_S, claims.expires_at - now)


def _problem(snapshot: Snapshot, step: str) -> Failed | None:
    """What keeps any token from being made or judged."""
    token, ref = snapshot.token, snapshot.token.jwt_ref
    if ref is None:
        return Failed(name=step, reason="Invalid", message="spec.jwtKeyRef is not set")
    try:
        lifetime = token.lifetime_s
    except ValueError as error:
        return Failed(name=step, reason="Invalid", message=f"spec.lifetime: {error}")
    if lifetime < 1:
        message = f"spec.lifetime: {token.spec.lifetime} is over at once; give 1s or more"
        return Failed(name=step, reason="Invalid", message=message)
    data = snapshot.key_secret and snapshot.key_secret.data
    if (missing := missing_key(ref, data, "spec.jwtKeyRef", needs_text=True)) is not None:
        return Failed(name=step, reason=missing.reason, message=missing.message)
    return _unfit_key(snapshot, step) or _misplaced(snapshot, step)


def _unfit_key(snapshot: Snapshot, step: str) -> Failed | None:
    """Why the key cannot sign as the Token asks for; any bytes can sign with HS256."""
    algorithm, ref = snapshot.algorithm, snapshot.token.jwt_ref
    if algorithm not in {HS256, RS256}:
        message = (
            f"annotation {keys.ANNOTATION_JWT_ALGORITHM}: {algorithm[:80]!r} is neither {HS256} nor {RS256}"
        )
        return Failed(name=step, reason="Invalid", message=message)
    if algorithm == RS256 and ref is not None:
        try:
            private_key(snapshot.signing_key)
        except KeyFormatError as error:
            message = f'key "{ref.key}" of Secret "{ref.name}": {error}'
            return Failed(name=step, reason="Invalid", message=message)
    return None


def _misplaced(snapshot: Snapshot, step: str) -> Failed | None:
    """Whether the token would go where something else belongs."""
    name, key = snapshot.where
    ref = snapshot.token.jwt_ref
    if ref is not None and name == ref.name:
        message = f'Secret "{name}" holds the signing key; name another one in spec.secretRef'
        return Failed(name=step, reason="Invalid", message=message)
    if snapshot.rival:
        message = (
            f'Token "{snapshot.rival}" writes to key "{key}" of Secret "{name}"; change spec.secretRef of one'
        )
        return Failed(name=step, reason="SecretTaken", message=message)
    return None


def _unwritable(snapshot: Snapshot, step: str) -> Failed | None:
    secret, name = snapshot.secret, snapshot.where[0]
    if secret is None:
        return None
    owner = secret.metadata.controller
    if owner is not None and not _ours(secret):
        message = (
            f'Secret "{name}" belongs to {owner.kind} "{owner.name}"; name another one in spec.secretRef'
        )
        return Failed(name=step, reason="SecretTaken", message=message)
    if secret.immutable:
        message = f'Secret "{name}" is immutable; delete it to get a token that is renewed'
        return Failed(name=step, reason="SecretImmutable", message=message)
    return None


def _ours(secret: SecretView) -> bool:
    """Secrets with tokens belong to a Secret with a key, and nothing else does."""
    owner = secret.metadata.controller
    return owner is not None and (owner.api_version, owner.kind) == ("v1", "Secret")
