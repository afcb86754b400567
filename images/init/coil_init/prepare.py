"""What must exist before the daemons start: directories, ssh host keys, the PAM line, hardware limits."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from .node import Hardware, limit_keys, parse_hardware, whole_number, with_conf
from .programs import Program

PAM_DEFAULTS = "action_adopt_failure=deny action_generic_failure=deny"
_DIRECTORIES: Mapping[str, tuple[str, ...]] = {
    "slurmctld": ("/run/slurmctld",),
    "slurmd": ("/run/slurm", "/var/spool/slurmd"),
    "sackd": ("/run/slurm",),
    "login": ("/run/slurm",),
}


def directories(image: str, owner: int | None) -> None:
    """Make the run directories of an image that are missing; existing ones are the pod's business."""
    for path in _DIRECTORIES[image]:
        if not Path(path).is_dir():
            Path(path).mkdir(0o755, parents=True)
            if owner is not None:
                os.chown(path, owner, owner)


def ssh() -> None:
    """Make what sshd needs; host keys only when there is none, so mounted keys stay the only ones."""
    Path("/run/sshd").mkdir(0o755, exist_ok=True)
    if not any(Path("/etc/ssh").glob("ssh_host_*_key")):
        subprocess.run(["ssh-keygen", "-A"], check=True, stdout=subprocess.DEVNULL)


def with_pam_adopt(text: str, options: str) -> str:
    """Return a PAM service file with the adopt line before the account stack; unchanged if it has one.

    It must come first: common-account has modules whose success ends the stack.
    """
    if "pam_slurm_adopt.so" in text:
        return text
    line = f"account    required     pam_slurm_adopt.so {options}".rstrip()
    lines = text.splitlines()
    for index, old in enumerate(lines):
        if old.split()[:2] in (["@include", "common-account"], ["account", "include"]):
            return "\n".join([*lines[:index], line, *lines[index:]]) + "\n"
    return "\n".join([*lines, line]) + "\n"


def pam_adopt(environ: Mapping[str, str], path: Path = Path("/etc/pam.d/sshd")) -> None:
    """Let sshd of a worker admit only users with a job there, and put them into it."""
    old = path.read_text()
    new = with_pam_adopt(old, environ.get("PAM_SLURM_ADOPT_OPTIONS", PAM_DEFAULTS))
    if new != old:
        changed = path.with_name(f"{path.name}.new")
        changed.write_text(new)
        changed.replace(path)


def with_limits(program: Program, environ: Mapping[str, str]) -> Program:
    """Return slurmd with the pod's limits and topology in its ``--conf``."""
    cpus = whole_number(environ.get("POD_CPUS"), "POD_CPUS")
    memory = whole_number(environ.get("POD_MEMORY"), "POD_MEMORY")
    extra = limit_keys(_hardware(), cpus, memory) if cpus > 0 or memory > 0 else {}
    if topology := environ.get("POD_TOPOLOGY"):
        extra["Topology"] = topology
    return replace(program, words=tuple(with_conf(program.words, extra)))


def _hardware() -> Hardware:
    done = subprocess.run(["slurmd", "-C"], capture_output=True, text=True, timeout=30, check=False)
    if done.returncode:
        msg = f"slurmd -C failed ({done.returncode}): {done.stderr.strip()}"
        raise ValueError(msg)
    return parse_hardware(done.stdout)


def is_mounted(path: str, mountinfo: str) -> bool:
    """Tell whether `path` itself is a mount point, by the text of /proc/self/mountinfo."""
    return any(line.split()[4:5] == [path] for line in mountinfo.splitlines())
