"""RSA keys of tokens: several may be good at once, which is how tokens outlive a change of keys.

slurmctld and slurmdbd read the public halves from a JWKS file, when they start and slurmctld also at a
reconfigure. They use RS256 keys only, skip all others, and find the key of a token by its `kid` (measured
with Slurm 26.05: tests/slurm). Here `kid` is the thumbprint of RFC 7638, so both sides know it without being
told.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

HS256, RS256 = "HS256", "RS256"
_LEAST_BITS = 2048


class KeyFormatError(ValueError):
    """A text that is no RSA key which can be used."""


@lru_cache(maxsize=64)
def private_key(pem: bytes) -> RSAPrivateKey:
    """The key that signs.

    Raises:
        KeyFormatError: not the PEM text of an unencrypted RSA private key of 2048 bits or more.
    """
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 -- 8 MB that few need
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey  # noqa: PLC0415 -- 8 MB that few need
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 -- 8 MB that few need

    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise KeyFormatError(f"no unencrypted private key in PEM form: {error}") from error
    if not isinstance(key, RSAPrivateKey) or key.key_size < _LEAST_BITS:
        raise KeyFormatError(f"no RSA private key of {_LEAST_BITS} bits or more")
    return key


def public_key(pem: bytes) -> RSAPublicKey:
    """The key that verifies, from either half.

    Raises:
        KeyFormatError: not the PEM text of an RSA key.
    """
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 -- 8 MB that few need
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey  # noqa: PLC0415 -- 8 MB that few need
    from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415 -- 8 MB that few need

    if b"PRIVATE KEY" in pem:
        return private_key(pem).public_key()
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise KeyFormatError(f"no public key in PEM form: {error}") from error
    if not isinstance(key, RSAPublicKey):
        raise KeyFormatError("no RSA public key")
    return key


def key_id(key: RSAPublicKey) -> str:
    """The thumbprint of RFC 7638."""
    numbers = key.public_numbers()
    members = {"e": _unsigned(numbers.e), "kty": "RSA", "n": _unsigned(numbers.n)}
    text = json.dumps(members, separators=(",", ":"), sort_keys=True)
    return _text(hashlib.sha256(text.encode()).digest())


def key_set(pems: Iterable[bytes]) -> dict[str, list[dict[str, str]]]:
    """The JWKS with the public halves of these keys, each once.

    Raises:
        KeyFormatError: one is no RSA key.
    """
    keys = {key_id(key): key for key in map(public_key, pems)}
    return {"keys": [_entry(kid, key) for kid, key in keys.items()]}


def _entry(kid: str, key: RSAPublicKey) -> dict[str, str]:
    numbers = key.public_numbers()
    public = {"n": _unsigned(numbers.n), "e": _unsigned(numbers.e)}
    return {"alg": RS256, "kty": "RSA", "use": "sig", "kid": kid, **public}


def _unsigned(number: int) -> str:
    return _text(number.to_bytes((number.bit_length() + 7) // 8, "big"))


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
