"""PyJWT as Slurm needs it. Loaded where a token is verified or RSA is used: it brings 8 MB."""

from typing import Any

import jwt
from jwt.algorithms import HMACAlgorithm

from coil.slurm.jwks import HS256, RS256

InvalidError = jwt.PyJWTError
"""A text that is no token of this key."""


class _Secret(HMACAlgorithm):
    """HMAC with whatever bytes the cluster's owner chose, as slurmctld takes them.

    PyJWT refuses keys that look like PEM; those are what Slurm's documentation once said to generate.
    """

    def prepare_key(self, key: str | bytes) -> bytes:
        return key.encode() if isinstance(key, str) else key

    def check_key_length(self, key: Any) -> str | None:
        """A short one is legal in Slurm."""
        del key
        return None


def _signatures() -> jwt.PyJWS:
    found = jwt.PyJWS([RS256])
    found.register_algorithm(HS256, _Secret(HMACAlgorithm.SHA256))
    return found


JWS = _signatures()
