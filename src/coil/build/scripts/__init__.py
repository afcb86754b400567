"""Shell scripts that run inside the pods coil makes, inline in their containers' commands.

`reconfigure` runs with bash, the others with a plain POSIX sh: nothing is assumed of the user's image beyond
that.
"""

from importlib.resources import files


def _text(name: str) -> str:
    return (files(__name__) / name).read_text()


LOGFILE = _text("logfile.sh")
"""Print what a daemon logs."""

RECONFIGURE = _text("reconfigure.sh")
"""Tell slurmctld when a configuration file has changed."""

REHEARSE = _text("rehearse.sh")
"""Try a configuration with a slurmctld of its own, in slurmctld's image: `cp`, `dd`, `grep`, `tail`.

Exits with 0 when slurmctld came up, 1 when it refused, 3 when it could not be tried, 4 when neither happened.
"""

INITCONF = _text("initconf.sh")
"""Give daemons that run as root a configuration folder of their own."""

GOODBYE = _text("goodbye.sh")
"""Tell Slurm that a worker stops, in slurmd's image: `hostname`, `scontrol` and `sed` besides the shell.

Slurm then requeues the node's jobs at once. A reason that is neither empty nor the operator's is given again
as it was, since `scontrol` takes no state DOWN without one (invariant I3). While it is unknown nothing is
said: slurmctld finds out by itself after SlurmdTimeout.
"""
