"""Where the lab keeps its things."""

import os
from pathlib import Path

# State of a running lab: sockets, pids, certificates, kubeconfig, logs. Gone after `lab down`.
STATE = Path("/run/coil-lab")
# What may grow: images, volumes, etcd. On disk, because /run is often memory. Gone after `lab down`.
DATA = Path("/var/lib/coil-lab")
# Pinned Go modules, one folder for each component.
GO_MODULES = Path(__file__).parent / "go"


def cache() -> Path:
    """Return the user's cache folder for what is expensive to make and never changes."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "coil"
