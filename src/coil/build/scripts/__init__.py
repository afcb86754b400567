"""Shell scripts that run inside the pods coil makes, inline in their containers' commands.

`logfile` and `initconf` run with a plain POSIX sh, `reconfigure` with bash: nothing is assumed of the
user's image beyond that.
"""

from importlib.resources import files


def _text(name: str) -> str:
    return (files(__name__) / name).read_text()


LOGFILE = _text("logfile.sh")
"""Print what a daemon logs."""

RECONFIGURE = _text("reconfigure.sh")
"""Tell slurmctld when a configuration file has changed."""

INITCONF = _text("initconf.sh")
"""Give daemons that run as root a configuration folder of their own."""
