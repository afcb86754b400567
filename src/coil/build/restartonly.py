"""Parameters of slurm.conf that a running slurmctld cannot take over: their change makes its pods anew.

Since Slurm 23.11 a reconfigure starts slurmctld's program anew, so nearly everything is taken over, the
hosts of slurmctld included (slurm.conf(5), SlurmctldHost). slurm.conf(5) and scontrol(1) of Slurm 26.05
except how the daemons listen and authenticate; the others here decide which cluster and which state it is.
slurmctld registers with slurmdbd at its start only (docs: accounting), so beginning or ending to keep
accounts is here too; slurmdbd's address is not.
"""

import re

RESTART_ONLY = {
    "slurmctldport": "port on which slurmctld listens",
    "slurmdport": "port on which slurmd listens",
    "authtype": "authentication",
    "authalttypes": "authentication",
    "credtype": "authentication",
    "tlstype": "authentication",
    "accountingstoragetype": "registration with slurmdbd",
    "clustername": "identity of the cluster",
    "slurmuser": "user of the daemons",
    "statesavelocation": "place of the state",
    "communicationparameters": "addresses on which the daemons listen",
}
"""Parameter in lower case to what it decides."""

_SETTING = re.compile(r"^[ \t]*([A-Za-z]+)[ \t]*=[ \t]*([^\s#]*)", re.MULTILINE)
_LISTENING = {"disableipv4", "enableipv6", "noctldinaddrany", "noinaddrany"}
"""Of CommunicationParameters these."""


def restart_values(slurm_conf: str) -> dict[str, tuple[str, ...]]:
    """The restart-only parameters that a slurm.conf sets, and to what; the last line of each counts."""
    found: dict[str, tuple[str, ...]] = {}
    for name, value in _SETTING.findall(slurm_conf):
        key = name.lower()
        if key in RESTART_ONLY:
            found[key] = (value,)
    if "communicationparameters" in found:
        (given,) = found.pop("communicationparameters")
        if listening := tuple(sorted(_LISTENING.intersection(given.lower().split(",")))):
            found["communicationparameters"] = listening
    return found


def needs_restart(old: str, new: str) -> tuple[str, ...]:
    """The restart-only parameters in which two texts of slurm.conf differ, sorted."""
    before, after = restart_values(old), restart_values(new)
    return tuple(sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key)))
