"""Hashes that decide whether pods are made anew; bit exact (spec: control-plane 2.2)."""

import hashlib
from collections.abc import Mapping

import msgspec


def byte_hash(value: bytes | None) -> str:
    """SHA-256 of the bytes in lower-case hex; an absent value hashes as no bytes."""
    return hashlib.sha256(value or b"").hexdigest()


def map_hash(values: Mapping[str, bytes] | Mapping[str, str] | None) -> str:
    """SHA-256 over the values in bytewise order of their keys, keys and separators left out.

    Nothing to hash gives the empty text, not the hash of nothing.
    """
    items = sorted((values or {}).items(), key=lambda item: item[0].encode())
    joined = b"".join(value.encode() if isinstance(value, str) else value for _, value in items)
    return byte_hash(joined) if joined else ""


class PodHashes(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Map hashes whose change makes the pods of a daemon anew; empty for an object that is missing.

    `config` covers what is generated for the daemon; a Controller with `inplaceReconfigure` leaves it out.
    """

    slurm_key: str = ""
    jwt_key: str = ""
    config: str = ""
