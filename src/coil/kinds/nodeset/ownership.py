"""Whose a reason of a Slurm node is (invariant I3)."""

from coil.api import keys
from coil.kinds.nodeset.drain import NOT_RESPONDING
from coil.slurm.wire import SlurmNode

MACHINE_REASONS = frozenset(
    {NOT_RESPONDING, "Node unexpectedly rebooted", "Kill task failed", "Prolog error", "Epilog error"}
)
"""Reasons that Slurm itself gives and that concern the machine the node was on."""

APPENDED = " : "
"""`scontrol reboot` puts this and its own reason behind the one that is there."""


def is_own(record: SlurmNode) -> bool:
    """The operator gave this reason, and nobody added to it."""
    return record.ours and bool(record.reason) and APPENDED not in record.reason


def is_silent(record: SlurmNode) -> bool:
    """Slurm says that the node went silent; people write of nodes that do not respond, too."""
    return record.reason == NOT_RESPONDING and _by_slurm(record)


def is_of_machine(record: SlurmNode) -> bool:
    """Slurm gave the reason, about the machine."""
    return record.reason in MACHINE_REASONS and _by_slurm(record)


def _by_slurm(record: SlurmNode) -> bool:
    return record.reason_user == keys.SLURM_USER
