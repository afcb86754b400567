"""The programs that the lab takes from the machine, and the Debian packages that bring them."""

import os
import shutil
import subprocess

from lab.errors import LabError
from lab.progress import say, step

# What must be there → the package of it.
_NEEDED = {
    "buildah": "buildah",
    "conntrack": "conntrack",
    "containerd": "containerd",
    "ctr": "containerd",
    "dpkg-deb": "dpkg",
    "ip": "iproute2",
    "iptables": "iptables",
    "mmdebstrap": "mmdebstrap",
    "mount": "mount",
    "nsenter": "util-linux",
    "runc": "runc",
    "setpriv": "util-linux",
    "socat": "socat",
    "/usr/lib/cni/ptp": "containernetworking-plugins",
}
# Debian keeps what only root uses outside an ordinary user's PATH.
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def missing() -> list[str]:
    """Return the packages of what is not there."""
    absent = {package for program, package in _NEEDED.items() if shutil.which(program, path=_PATH) is None}
    return sorted(absent)


def ensure() -> None:
    """Install what is missing.

    Raises:
        LabError: not root, not Debian, or apt-get failed.
    """
    if os.geteuid() != 0:
        raise LabError("the lab makes network namespaces, mounts and cgroups: run it as root")
    packages = missing()
    if not packages:
        return
    if shutil.which("apt-get") is None:
        raise LabError(f"install what Debian calls {' '.join(packages)}; the lab can do it on Debian only")
    say(f"installing Debian packages: {' '.join(packages)}")
    with step("Debian packages: installed"):
        _apt_get("update", "-q")
        _apt_get("install", "-q", "-y", "--no-install-recommends", *packages)


def _apt_get(*arguments: str) -> None:
    done = subprocess.run(
        ["apt-get", *arguments],
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LabError(f"apt-get {' '.join(arguments)} failed: {done.stderr.strip() or done.stdout[-500:]}")
