"""Which slurmctld hosts a cluster has, and which of them is active by the heartbeat that they share.

The active slurmctld writes the time and its place among the hosts into StateSaveLocation, each quarter of
SlurmctldTimeout; its backups take over when that stops (slurm.conf(5), SlurmctldTimeout).
"""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path

CONF = "/etc/slurm/slurm.conf"
_DEFAULT_PORT, _DEFAULT_TIMEOUT_S = 6817, 120.0
_HEARTBEAT = struct.Struct(">QQ")
_LINE = re.compile(r"^[ \t]*(\w+)[ \t]*=[ \t]*([^\s#]+)", re.MULTILINE)
_HOST = re.compile(r"([^(]+)(?:\((.+)\))?")
_SEVERAL = 2


@dataclass(frozen=True)
class Peers:
    """The slurmctld hosts by order of preference: (name, address) each; `own` is the place of this one."""

    hosts: tuple[tuple[str, str], ...]
    own: int
    port: int
    timeout_s: float
    state: Path


@dataclass(frozen=True)
class Heartbeat:
    """Who was active, and when it last said so (Unix seconds of its clock)."""

    time: int
    index: int


def parse(text: str, hostname: str) -> Peers | None:
    """Return the hosts of a slurm.conf; None when there is one only, or `hostname` is none of them."""
    found: dict[str, list[str]] = {}
    for name, value in _LINE.findall(text):
        found.setdefault(name.lower(), []).append(value)
    matches = [_HOST.fullmatch(value) for value in found.get("slurmctldhost", [])]
    hosts = tuple((match[1], match[2] or match[1]) for match in matches if match)
    names = [name for name, _ in hosts]
    state = found.get("statesavelocation", [""])[-1]
    if len(hosts) < _SEVERAL or hostname not in names or not state:
        return None
    return Peers(
        hosts=hosts,
        own=names.index(hostname),
        port=int(found.get("slurmctldport", [str(_DEFAULT_PORT)])[-1]),
        timeout_s=float(found.get("slurmctldtimeout", [str(_DEFAULT_TIMEOUT_S)])[-1]),
        state=Path(state),
    )


def read_peers(conf: str, hostname: str) -> Peers | None:
    """Return the hosts of the slurm.conf at `conf`; None when it has one only or says nonsense."""
    try:
        return parse(Path(conf).read_text(), hostname)
    except (OSError, ValueError):
        return None


def read_heartbeat(state: Path) -> Heartbeat | None:
    """Return the heartbeat; None while there is none that can be read."""
    try:
        return Heartbeat(*_HEARTBEAT.unpack((state / "heartbeat").read_bytes()))
    except (OSError, struct.error):
        return None


def read_note(state: Path, name: str) -> str:
    """Return the line that an init left in StateSaveLocation; empty when there is none or half of one."""
    try:
        text = (state / name).read_text()
    except (OSError, ValueError):
        return ""
    return text.removesuffix("\n") if text.endswith("\n") else ""


def leave_note(state: Path, name: str, line: str) -> None:
    """Leave a line for the inits of the other hosts.

    It is written in place: of a new file in a folder an NFS client may learn half a minute later.

    Raises:
        OSError: it cannot be written.
    """
    with (state / name).open("w") as file:
        file.write(f"{line}\n")
        file.flush()
        os.fsync(file.fileno())
