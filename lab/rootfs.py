"""Debian root file systems for the lab: the base of every image and a tree with all of Slurm.

Both come from the Debian archive that this machine's own apt uses, so no archive address is written
down here, and both live in the user cache keyed by a hash of what they are made from: the same inputs
are never bootstrapped twice, and other inputs never reuse an old tree.

``python -m lab.rootfs`` makes both and prints where they are.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

SUITE = "forky"
"""Debian suite of the images: the one that packages Slurm 26.05."""

SLURM_PACKAGES = (
    "slurmctld",
    "slurmd",
    "slurmdbd",
    "slurmrestd",
    "sackd",
    "slurm-client",
    "slurm-wlm-basic-plugins",
    "slurm-wlm-jwt-plugin",
    "slurm-wlm-mysql-plugin",
)

# Written before any package is configured: the packages keep an existing user and would otherwise
# create `slurm` with another id than the 401 that the pods run as.
_SLURM_USER_HOOK = (
    'echo "slurm:x:401:" >>"$1/etc/group" && '
    'echo "slurm:x:401:401:Slurm:/var/lib/slurm:/usr/sbin/nologin" >>"$1/etc/passwd" && '
    'echo "slurm:*:20000::::::" >>"$1/etc/shadow"'
)

_SLURM_FOLDERS_HOOK = 'cd "$1" && install -d -o 401 -g 401 var/spool/slurmctld run/slurmctld var/log/slurm'


class RootfsError(RuntimeError):
    """A root file system cannot be made; the text says what to do."""


@dataclass(frozen=True)
class Recipe:
    """What a root file system is made from; its hash is the key in the cache."""

    include: tuple[str, ...]
    hooks: tuple[str, ...] = ()
    suite: str = SUITE
    options: tuple[str, ...] = (
        # forky's Release file may be older than its own Valid-Until.
        '--aptopt=Acquire::Check-Valid-Until "false"',
        '--aptopt=APT::Install-Recommends "false"',
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/info/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        "--dpkgopt=path-exclude=/usr/share/lintian/*",
    )

    @property
    def key(self) -> str:
        """First 16 hex digits of the SHA-256 of the inputs."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


BASE = Recipe(
    include=(),
    # The archive of this machine must not get into the images.
    hooks=('--customize-hook=rm -f "$1/etc/apt/sources.list" "$1"/etc/apt/sources.list.d/*',),
)

SLURM_TREE = Recipe(
    include=("adduser", "systemd-standalone-sysusers", *SLURM_PACKAGES, "python3"),
    hooks=(
        f"--essential-hook={_SLURM_USER_HOOK}",
        '--customize-hook=rm -rf "$1"/etc/slurm/* "$1"/etc/apt/sources.list',
        '--customize-hook=mkdir -p "$1/var/spool/slurmd" "$1/run/slurm"',
        f"--customize-hook={_SLURM_FOLDERS_HOOK}",
    ),
)


def cache_dir() -> Path:
    """Return the cache folder of the project, ``${XDG_CACHE_HOME:-~/.cache}/coil``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coil"


@contextlib.contextmanager
def locked(name: str) -> Generator[None]:
    """Hold the cache lock `name`, so that two callers never make the same thing at once."""
    path = cache_dir() / "locks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def archive_addresses(
    etc_apt: Path = Path("/etc/apt"), os_release: Path = Path("/etc/os-release")
) -> list[str]:
    """Return the addresses of the Debian archive that apt on this machine uses, main archive only.

    `COIL_DEBIAN_ARCHIVE` in the environment overrides them (for hosts that are not Debian).
    """
    if override := os.environ.get("COIL_DEBIAN_ARCHIVE"):
        return [override]
    match = re.search(r"^VERSION_CODENAME=(\S+)", os_release.read_text(), re.MULTILINE)
    codename = match.group(1) if match else ""
    texts = [path.read_text() for path in sorted(etc_apt.glob("sources.list.d/*.sources"))]
    found = [uri for text in texts for uri in _deb822_uris(text, codename)]
    lists = [etc_apt / "sources.list", *sorted(etc_apt.glob("sources.list.d/*.list"))]
    for path in lists:
        if path.exists():
            found += re.findall(
                rf"^deb\s+(?:\[[^\]]*\]\s*)?(\S+)\s+{codename}\s", path.read_text(), re.MULTILINE
            )
    if not codename or not found:
        msg = (
            "apt on this machine has no Debian archive to bootstrap from; "
            "set COIL_DEBIAN_ARCHIVE to the address of one"
        )
        raise RootfsError(msg)
    return list(dict.fromkeys(found))


def _deb822_uris(text: str, codename: str) -> Iterator[str]:
    for stanza in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", stanza, re.MULTILINE))
        if "deb" in fields.get("Types", "").split() and codename in fields.get("Suites", "").split():
            yield from fields.get("URIs", "").split()


def sources_text(suite: str = SUITE) -> str:
    """Return apt source lines for `suite` on this machine's archive."""
    return "".join(f"deb {uri} {suite} main\n" for uri in archive_addresses()[:1])


def base_archive() -> Path:
    """Return the base root file system (Debian minbase) as a tar archive; made when missing."""
    path = cache_dir() / "rootfs" / f"base-{BASE.key}.tar"
    with locked("base-rootfs"):
        if not path.exists():
            _bootstrap(BASE, path, "Debian base")
    return path


def slurm_tree() -> Path:
    """Return a directory tree with Debian and every Slurm program, to be used with chroot.

    `slurm-tree/current` in the cache always names the newest one.
    """
    home = cache_dir() / "slurm-tree"
    path = home / SLURM_TREE.key
    with locked("slurm-tree"):
        if not path.exists():
            _bootstrap(SLURM_TREE, path, "Slurm tree")
        link = home / "current"
        if not link.is_symlink() or link.readlink() != Path(path.name):
            link.unlink(missing_ok=True)
            link.symlink_to(path.name)
    return path


def _bootstrap(recipe: Recipe, target: Path, title: str) -> None:
    """Make `target` (a .tar file, or a directory) under a temporary name, then rename it."""
    if shutil.which("mmdebstrap") is None:
        msg = "mmdebstrap is missing: apt-get install mmdebstrap"
        raise RootfsError(msg)
    target.parent.mkdir(parents=True, exist_ok=True)
    print(f"==> {title}: bootstrapping Debian {recipe.suite} (some 20 to 60 s) ...", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as folder:
        made = Path(folder) / target.name
        _mmdebstrap(recipe, made)
        made.rename(target)
    print(f"    {title}: {target} in {time.monotonic() - began:.0f} s", flush=True)


def _mmdebstrap(recipe: Recipe, made: Path) -> None:
    kind = "tar" if made.suffix == ".tar" else "directory"
    include = [f"--include={','.join(recipe.include)}"] if recipe.include else []
    command: Sequence[str] = [
        "mmdebstrap",
        "--variant=minbase",
        f"--format={kind}",
        *recipe.options,
        *include,
        *recipe.hooks,
        recipe.suite,
        str(made),
        *archive_addresses()[:1],
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        msg = f"mmdebstrap failed ({done.returncode}):\n{done.stderr[-3000:]}"
        raise RootfsError(msg)


if __name__ == "__main__":
    print(base_archive())
    print(slurm_tree())
