"""Whether clients of today accept a host key (field case LGN-02). Pure."""

from collections.abc import Mapping

WEAK_BELOW_BITS = 2048
"""OpenSSH clients refuse shorter RSA keys by default (`RequiredRSASize` of many distributions)."""


def rsa_bits(files: Mapping[str, bytes]) -> int | None:
    """Length of the RSA host key; None when there is none that can be read."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 -- 8 MB that few need
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 -- 8 MB that few need
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 -- 8 MB that few need

    try:
        key = serialization.load_ssh_public_key(files.get("ssh_host_rsa_key.pub", b""))
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key.key_size if isinstance(key, rsa.RSAPublicKey) else None
