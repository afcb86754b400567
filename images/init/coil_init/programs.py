"""Which programs each image runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .words import Word, join, split

SLURM_ID = 401


@dataclass(frozen=True)
class Program:
    """A program that the init starts."""

    name: str
    words: tuple[Word, ...]
    """The program and its arguments."""
    essential: bool = False
    """Its end ends the container; another program is started again."""
    notify: bool = False
    """It reports its main process over the notify socket."""
    owner: int | None = None
    """User and group id to run as; None keeps those of the init."""
    wait_for: tuple[str, int] | None = None
    """An address that should accept connections before the program starts."""
    before: Callable[[], None] | None = None
    """Called in the new process before the program starts; it may take its time."""


@dataclass(frozen=True)
class Situation:
    """What the choice of programs depends on."""

    environ: Mapping[str, str]
    arguments: list[str]
    root: bool
    configured: Callable[[str], bool]
    """Tells whether a configuration file was mounted into the container."""
    exists: Callable[[str], bool]


def daemon(name: str, situation: Situation, *, owner: int | None = None, essential: bool = True) -> Program:
    """Return the Slurm daemon `name` with ``<NAME>_OPTIONS`` and the container's arguments."""
    options = situation.environ.get(f"{name.upper()}_OPTIONS", "")
    words = split(join(options, situation.arguments), situation.environ)
    return Program(
        name,
        _plain(name, "--systemd") + tuple(words),
        essential=essential,
        notify=True,
        owner=owner,
        wait_for=conf_server([word.text for word in words]),
    )


def conf_server(arguments: Sequence[str]) -> tuple[str, int] | None:
    """Return the first address of ``--conf-server``, or None.

    A daemon that does not reach it tries again only after 10 s, so it pays to start it a moment later.
    """
    value = ""
    for index, argument in enumerate(arguments):
        if argument == "--conf-server":
            value = "".join(arguments[index + 1 : index + 2])
        elif argument.startswith("--conf-server="):
            value = argument.partition("=")[2]
    host, colon, port = value.split(",")[0].rpartition(":")
    if not colon:
        host, port = port, "6817"
    return (host.strip("[]"), int(port)) if host and port.isdigit() else None


def helpers(situation: Situation, *, sshd: bool, sshd_essential: bool = False) -> list[Program]:
    """Return sshd (when wanted) and sssd (when configured)."""
    environ, found = situation.environ, []
    if sshd:
        words = _plain("/usr/sbin/sshd", "-D", "-e") + tuple(split(environ.get("SSHD_OPTIONS", ""), environ))
        found.append(Program("sshd", words, essential=sshd_essential))
    if situation.exists("/etc/sssd/sssd.conf") and situation.exists("/usr/sbin/sssd"):
        words = _plain("/usr/sbin/sssd", "-i", "--logger=stderr")
        words += tuple(split(environ.get("SSSD_OPTIONS", ""), environ))
        found.append(Program("sssd", words))
    return found


def wants_sshd(situation: Situation) -> bool:
    """Tell whether a worker runs sshd: its configuration was mounted, or ENABLE_SSHD=1."""
    return situation.environ.get("ENABLE_SSHD") == "1" or situation.configured("/etc/ssh/sshd_config")


def programs(image: str, situation: Situation) -> list[Program]:
    """Return the programs of an image, in the order in which they are stopped.

    Raises:
        ValueError: no such image, or options that cannot be read.
    """
    if image == "slurmctld":
        return [daemon("slurmctld", situation)]
    if image == "slurmd":
        return [daemon("slurmd", situation), *helpers(situation, sshd=wants_sshd(situation))]
    owner = SLURM_ID if situation.root else None
    if image == "sackd":
        return [daemon("sackd", situation, owner=owner)]
    if image == "login":
        # People's sessions are children of sshd: a restart of sackd must not end them.
        sackd = daemon("sackd", situation, owner=owner, essential=False)
        return [sackd, *helpers(situation, sshd=True, sshd_essential=True)]
    msg = f"no such image: {image!r} (slurmctld, slurmd, sackd or login)"
    raise ValueError(msg)


def _plain(*texts: str) -> tuple[Word, ...]:
    return tuple(Word(text, text) for text in texts)
