"""Tokens for Slurm's auth/jwt, signed with the key that slurmctld holds as `jwt.key`.

Format: spec: control-plane 9.2. RS256 is an addition: `coil.slurm.jwks`.
"""

import base64
import hmac
import time
import uuid
from collections.abc import Callable
from typing import Protocol

import msgspec

from coil.slurm.jwks import HS256, RS256, key_id, private_key, public_key

ISSUER = "slurm-operator"
MAX_LIFETIME_S = 2_147_483_646
"""Longest life of a token; one second more means "infinite" to Slurm."""
NOBODY = "nobody"
"""The user a token without a user name is for."""
REFRESH_AT = 0.8
"""Part of its life after which a token is replaced."""

_MOST_KEYS = 4
"""Keys that are remembered while slurmctld has not been seen to take the newest."""


class TokenError(ValueError):
    """A text that is no token signed with the key it was checked with."""


class Claims(msgspec.Struct, frozen=True, gc=False):
    """What a verified token says; times are Unix seconds."""

    username: str = msgspec.field(name="sun")
    issued_at: int = msgspec.field(name="iat")
    expires_at: int = msgspec.field(name="exp")

    def expired(self, now: float) -> bool:
        """Whether slurmctld would refuse the token at `now`."""
        return now >= self.expires_at


def mint(key: bytes, username: str, lifetime_s: float, now: float, algorithm: str = HS256) -> str:
    """Return a new token for `username`, valid from `now` (Unix seconds) for `lifetime_s` seconds.

    An empty name becomes `nobody`; the lifetime is kept between 0 and `MAX_LIFETIME_S`. For RS256 `key` is an
    RSA private key in PEM form, whose public half slurmctld finds in its JWKS by `coil.slurm.jwks.key_id`.

    Raises:
        KeyFormatError: the key cannot sign so.
    """
    issued = int(now)
    claims = {
        "iss": ISSUER,
        "sun": username or NOBODY,
        "iat": issued,
        "nbf": issued,
        "exp": issued + int(min(max(lifetime_s, 0), MAX_LIFETIME_S)),
        "jti": str(uuid.uuid4()),
    }
    body = msgspec.json.encode(claims)
    if algorithm == RS256:
        from coil.slurm.signatures import JWS  # noqa: PLC0415 -- 8 MB that few need

        private = private_key(key)
        return JWS.encode(body, private, RS256, headers={"kid": key_id(private.public_key())})
    return _signed(body, key)


def verify(key: bytes, token: str, algorithm: str = HS256) -> Claims:
    """Check who signed `token` and return its claims; an expired token is no error.

    The caller compares times with its own clock: expiry is a state to act on.

    Raises:
        TokenError: not a token, signed with another key or algorithm, or a claim is missing.
        KeyFormatError: the key cannot have signed so.
    """
    from coil.slurm.signatures import JWS, InvalidError  # noqa: PLC0415 -- 8 MB that few need

    verifier = public_key(key) if algorithm == RS256 else key
    try:
        return msgspec.json.decode(JWS.decode(token, verifier, [algorithm]), type=Claims)
    except (InvalidError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TokenError(f"token is not valid for this key: {error}") from error


_HEAD = {"alg": HS256, "typ": "JWT"}


def _signed(body: bytes, key: bytes) -> str:
    """The token in RFC 7515's compact form, without loading PyJWT for it."""
    text = b".".join(map(_base64, (msgspec.json.encode(_HEAD), body)))
    return b".".join((text, _base64(hmac.digest(key, text, "sha256")))).decode()


def _base64(value: bytes) -> bytes:
    return base64.urlsafe_b64encode(value).rstrip(b"=")


class Tokens(Protocol):
    """Gives the token for a request, and hears how it fared."""

    def __call__(self) -> str:
        """The token to send."""
        ...

    def refused(self, token: str) -> str:
        """The token to send instead of one that slurmctld refused; "" when there is none."""
        ...

    def taken(self, token: str) -> None:
        """A request with this token was answered."""
        ...


class TokenSource:
    """Tokens signed with the key that slurmctld has; a new one when the old has used up most of its life.

    slurmctld takes tokens of one HS256 key at a time. After `rotate` those of the former key are sent until
    they are refused, then those of the next: no request fails because slurmctld has its new key sooner or
    later than we, and nothing else is disturbed (field case SEC-07).
    """

    def __init__(
        self,
        key: bytes,
        username: str = "slurm",
        lifetime_s: float = 900,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._signers = [_Signer(key, username, lifetime_s, clock)]
        self._on_change: list[Callable[[], None]] = []

    @property
    def key(self) -> bytes:
        """The key that slurmctld takes, as far as is known."""
        return self._signers[0].key

    @property
    def keys(self) -> list[bytes]:
        """That key, and those given since, which slurmctld has not been seen to take."""
        return [signer.key for signer in self._signers]

    def __call__(self) -> str:
        """The token to send now."""
        return self._signers[0].token()

    def rotate(self, key: bytes) -> None:
        """Slurmctld is about to have `key`."""
        if key != self._signers[-1].key:
            self._signers = [*self._signers, self._signers[0].with_key(key)][-_MOST_KEYS:]

    def refused(self, token: str) -> str:
        """A token of the key that came after that of the refused one; "" when there is none."""
        at = next((at for at, signer in enumerate(self._signers) if signer.signed(token)), None)
        later = self._signers[at + 1 :] if at is not None else self._signers
        return later[0].token() if later else ""

    def taken(self, token: str) -> None:
        """Slurmctld has the key of this token: forget those before it, and tell who waits for that."""
        at = next((at for at, signer in enumerate(self._signers) if signer.signed(token)), 0)
        if at:
            del self._signers[:at]
            for callback in self._on_change:
                callback()

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call back when slurmctld was seen to have another key."""
        self._on_change.append(callback)


class _Signer:
    """Tokens of one key."""

    def __init__(self, key: bytes, username: str, lifetime_s: float, clock: Callable[[], float]) -> None:
        self.key = key
        self._username = username
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._tokens = ("", "")
        self._renew_at = 0.0

    def with_key(self, key: bytes) -> "_Signer":
        """The same with another key."""
        return _Signer(key, self._username, self._lifetime_s, self._clock)

    def token(self) -> str:
        """The current token."""
        now = self._clock()
        if not self._tokens[0] or now >= self._renew_at:
            self._tokens = (mint(self.key, self._username, self._lifetime_s, now), self._tokens[0])
            self._renew_at = now + self._lifetime_s * REFRESH_AT
        return self._tokens[0]

    def signed(self, token: str) -> bool:
        """Whether this is the current token or the one before it, which may still be under way."""
        return bool(token) and token in self._tokens
