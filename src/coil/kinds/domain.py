"""The cluster's DNS domain, as the operator's own pod sees it (spec: control-plane 2.6)."""

from pathlib import Path

from coil.api import names

RESOLV_CONF = Path("/etc/resolv.conf")


def cluster_domain(path: Path = RESOLV_CONF) -> str:
    """Read on each use: the kubelet may write the file anew."""
    try:
        return names.cluster_domain(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return names.DEFAULT_DOMAIN
