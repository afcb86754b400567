"""From the container's arguments and environment to a running supervisor."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from . import peers, prepare
from .guard import Guard
from .handover import Handover
from .processes import log
from .programs import SLURM_ID, Program, Situation, programs
from .supervisor import Supervisor

DEFAULT_STOP_TIMEOUT_S = 25
"""Below the 30 s that a pod has by default. STOP_TIMEOUT should follow the pod's grace period."""


def main(arguments: list[str]) -> int:
    """Run the programs of an image: `arguments` are the image's name and the container's arguments."""
    try:
        image, *rest = arguments
        chosen = _prepared(image, _situation(rest))
        timeout = prepare.whole_number(
            os.environ.get("STOP_TIMEOUT", str(DEFAULT_STOP_TIMEOUT_S)), "STOP_TIMEOUT"
        )
        supervisor = Supervisor(chosen, timeout)
    except (ValueError, OSError) as error:
        log(str(error))
        return 64
    guard = Guard(_conf(), supervisor.daemon)
    if image == "slurmctld":
        guard.start()
    code = supervisor.run()
    guard.ended()
    log(f"ending with {code}")
    return code


def _situation(arguments: list[str]) -> Situation:
    mountinfo = Path("/proc/self/mountinfo").read_text()
    return Situation(
        environ=os.environ,
        arguments=arguments,
        root=os.geteuid() == 0,
        configured=lambda path: prepare.is_mounted(path, mountinfo),
        exists=os.path.exists,
    )


def _prepared(image: str, situation: Situation) -> list[Program]:
    chosen = programs(image, situation)
    prepare.directories(image, SLURM_ID if situation.root and image in ("sackd", "login") else None)
    names = {program.name for program in chosen}
    if "sshd" in names:
        prepare.ssh()
    if "sshd" in names and image == "slurmd":
        prepare.pam_adopt(situation.environ)
    if image == "slurmctld":
        chosen[0] = replace(chosen[0], before=Handover(_conf()))
    if image == "slurmd":
        chosen[0] = prepare.with_limits(chosen[0], situation.environ)
    return chosen


def _conf() -> str:
    return os.environ.get("SLURM_CONF", peers.CONF)
