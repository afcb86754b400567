"""Tokens for Slurm's auth/jwt, signed with the key that slurmctld holds as `jwt.key`.

Format: spec: control-plane 9.2.
"""

import time
import uuid
import warnings
from collections.abc import Callable

import jwt
import msgspec

ISSUER = "slurm-operator"
MAX_LIFETIME_S = 2_147_483_646
"""Longest life of a token; one second more means "infinite" to Slurm."""
NOBODY = "nobody"
"""The user a token without a user name is for."""
REFRESH_AT = 0.8
"""Part of its life after which a token is replaced."""

_ALGORITHM = "HS256"


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


def mint(key: bytes, username: str, lifetime_s: float, now: float) -> str:
    """Return a new token for `username`, valid from `now` (Unix seconds) for `lifetime_s` seconds.

    An empty name becomes `nobody`; the lifetime is kept between 0 and `MAX_LIFETIME_S`.
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
    with warnings.catch_warnings():
        # The key is the cluster's, chosen by its owner; a short one is legal in Slurm.
        warnings.simplefilter("ignore", jwt.InsecureKeyLengthWarning)
        return jwt.encode(claims, key, algorithm=_ALGORITHM)


def verify(key: bytes, token: str) -> Claims:
    """Check who signed `token` and return its claims; an expired token is no error.

    Raises:
        TokenError: not a token, signed with another key or algorithm, or a claim is missing.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", jwt.InsecureKeyLengthWarning)
            # The caller compares times with its own clock: expiry is a state to act on, not an error.
            claims = jwt.decode(
                token,
                key,
                algorithms=[_ALGORITHM],
                options={"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_aud": False},
            )
        return msgspec.convert(claims, Claims)
    except (jwt.PyJWTError, msgspec.ValidationError) as error:
        raise TokenError(f"token is not valid for this key: {error}") from error


class TokenSource:
    """Gives the token for the next request, a new one when the old has used up most of its life.

    Replacing the key takes effect with the next request and disturbs nothing else (field case SEC-07).
    """

    def __init__(
        self,
        key: bytes,
        username: str = "slurm",
        lifetime_s: float = 900,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._key = key
        self._username = username
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._token = ""
        self._renew_at = 0.0

    def __call__(self) -> str:
        """The token to send now."""
        now = self._clock()
        if not self._token or now >= self._renew_at:
            self._token = mint(self._key, self._username, self._lifetime_s, now)
            self._renew_at = now + self._lifetime_s * REFRESH_AT
        return self._token

    def rotate(self, key: bytes) -> None:
        """Sign with `key` from now on."""
        if key != self._key:
            self._key = key
            self._token = ""
