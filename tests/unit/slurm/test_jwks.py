"""Claims about RSA keys of tokens and the JWKS with their public halves."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from coil.slurm.jwks import KeyFormatError, key_id, key_set, private_key, public_key

KEY = rsa.generate_private_key(65537, 2048)
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
PUBLIC = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
LOCKED = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word"))
SMALL_KEY = rsa.generate_private_key(65537, 1024)  # noqa: S505 -- it is to be refused
SMALL = SMALL_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
CURVE = ec.generate_private_key(ec.SECP256R1()).private_bytes(
    Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
)

RFC_7638 = (
    "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWK"
    "RXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMic"
    "AtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3"
    "XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
)
"""Modulus of the example key."""


def test_the_thumbprint_is_that_of_the_standard() -> None:
    """The example of RFC 7638, section 3.1."""
    modulus = int.from_bytes(base64.urlsafe_b64decode(RFC_7638 + "=="), "big")
    key = rsa.RSAPublicNumbers(65537, modulus).public_key()
    assert key_id(key) == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"


def test_both_halves_make_the_same_public_entry_once() -> None:
    [entry] = key_set([PEM, PUBLIC])["keys"]
    assert entry["kid"] == key_id(KEY.public_key()) == key_id(public_key(PUBLIC))
    assert set(entry) == {"alg", "kty", "use", "kid", "n", "e"}
    assert entry["e"] == "AQAB"


@pytest.mark.parametrize("pem", [b"", b"garbage", PUBLIC, LOCKED, SMALL, CURVE])
def test_what_cannot_sign_is_told(pem: bytes) -> None:
    with pytest.raises(KeyFormatError):
        private_key(pem)


@pytest.mark.parametrize("pem", [b"", b"garbage", LOCKED, CURVE])
def test_what_cannot_verify_is_told(pem: bytes) -> None:
    with pytest.raises(KeyFormatError):
        public_key(pem)
