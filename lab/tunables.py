"""Kernel settings that a kubelet changes for the whole machine: remembered at `up`, put back at `down`."""

import json
from pathlib import Path

from lab import paths

_SAVED = paths.STATE / "tunables.json"
_NAMES = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)


def save() -> None:
    """Remember the settings, unless an earlier start did."""
    if not _SAVED.exists():
        values = {name: _path(name).read_text() for name in _NAMES if _path(name).exists()}
        _SAVED.write_text(json.dumps(values))


def restore() -> None:
    """Put back what `save` remembered."""
    if _SAVED.exists():
        for name, value in json.loads(_SAVED.read_text()).items():
            if _path(name).read_text() != value:
                _path(name).write_text(value)


def _path(name: str) -> Path:
    return Path("/proc/sys") / name
