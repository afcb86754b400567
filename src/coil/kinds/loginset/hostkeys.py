"""The ssh host keys of a LoginSet: made once, in the formats that sshd reads (spec: control-plane 8.2)."""

import asyncio
from collections.abc import Callable, Mapping

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

RSA_BITS = 4096

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey

_KINDS: Mapping[str, Callable[[], PrivateKey]] = {
    "rsa": lambda: rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS),
    "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
}


async def generate() -> dict[str, str]:
    """New keys by file name. An RSA key takes seconds, so it is made beside the event loop."""
    return await asyncio.to_thread(_generate)


def _generate() -> dict[str, str]:
    return {name: text for kind, make in _KINDS.items() for name, text in _files(kind, make()).items()}


def _files(kind: str, key: PrivateKey) -> dict[str, str]:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    name = f"ssh_host_{kind}_key"
    return {name: private.decode(), f"{name}.pub": f"{public.decode()}\n"}
