"""The number by which slurmctld names the slurm.conf it runs with.

`GET conf` reports it as `HashValue`; `scontrol show config` as HASH_VAL. It covers every byte of slurm.conf,
comments included, and of the files that it includes, at the place where they are included (measured with
Slurm 26.05: tests/slurm).
"""

import re
from collections.abc import Mapping
from functools import cache
from posixpath import basename

_INCLUDE = re.compile(rb"^\s*include\s+([^\s#]+)", re.IGNORECASE)
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_MASK = 0xFFFFFFFF
_POLYNOMIAL = 4129
_DEPTH = 8
"""Files that include one another more deeply than this are taken for a loop."""


def conf_hash(text: str, files: Mapping[str, str] | None = None) -> int | None:
    """The hash of a slurm.conf; None when it includes a file that is not among `files` (by base name)."""
    return _hashed(0, text.encode(), {name: body.encode() for name, body in (files or {}).items()}, _DEPTH)


def _hashed(value: int, data: bytes, files: Mapping[str, bytes], depth: int) -> int | None:
    for line in _LINE.findall(data):
        value = _over(value, line)
        include = _INCLUDE.match(line)
        if include is None:
            continue
        included = files.get(basename(include[1].decode(errors="replace")))
        inner = None if included is None or not depth else _hashed(value, included, files, depth - 1)
        if inner is None:
            return None
        value = inner
    return value


def _over(value: int, data: bytes) -> int:
    table = _table()
    for byte in data:
        # Slurm's characters are signed: the upper half reaches into the high bits.
        value ^= (byte if byte < 0x80 else byte - 0x100) << 8 & _MASK  # noqa: PLR2004 -- the sign bit
        value = (value & ~0xFF00) << 8 & _MASK ^ table[value >> 8 & 0xFF]
    return value


@cache
def _table() -> tuple[int, ...]:
    return tuple(_eight_steps(byte << 8) for byte in range(0x100))


def _eight_steps(value: int) -> int:
    for _ in range(8):
        value = (value << 1 ^ _POLYNOMIAL if value & 0x8000 else value << 1) & _MASK
    return value
