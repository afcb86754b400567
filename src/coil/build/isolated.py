"""A configuration as a slurmctld may try it beside the running cluster, without touching it.

    files = isolated(files)          # for the rehearsal
    line = offending_line(said, files)   # of the original

Lines keep their numbers, so what slurmctld says of a line holds for the original. Left out is whatever
leads to other daemons or programs, and what only slurmdbd knows when accounts are kept: a slurmctld
without slurmdbd refuses it (measured with Slurm 26.05). Those settings are not tried.
"""

import re
from collections.abc import Mapping, Sequence
from posixpath import basename

from coil.api import keys

WORK_DIR = "/tmp/rehearsal"  # noqa: S108 -- inside the rehearsal's own container
LOOPBACK = "127.0.0.1"

_TAIL = f"""
#
### REHEARSAL ###
AccountingStorageType=accounting_storage/none
StateSaveLocation={WORK_DIR}/state
SlurmctldPidFile={WORK_DIR}/slurmctld.pid
SlurmctldDebug=info
"""
_OUTSIDE = (
    "AccountingStorageType",
    "AccountingStorageHost",
    "AccountingStorageBackupHost",
    "AccountingStorageExternalHost",
    "JobCompType",
    "NodeAddr",
    "ResumeFailProgram",
    "ResumeProgram",
    "SlurmctldAddr",
    "SlurmctldDebug",
    "SlurmctldPidFile",
    "SlurmctldPrimaryOffProg",
    "SlurmctldPrimaryOnProg",
    "StateSaveLocation",
    "SuspendProgram",
)
_ONLY_SLURMDBD_KNOWS = (
    "AccountingStorageEnforce",
    "AccountingStorageTRES",
    "AllowQos",
    "DenyQos",
    "PriorityWeightTRES",
    "QOS",
    "TRESBillingWeights",
)
_ACCOUNTS = re.compile(
    r"^[ \t]*AccountingStorageType[ \t]*=[ \t]*accounting_storage/slurmdbd", re.IGNORECASE | re.MULTILINE
)
_INCLUDE = re.compile(r"^\s*include\s+([^\s#]+)", re.IGNORECASE | re.MULTILINE)
_HOST = re.compile(r"^[ \t]*(?:SlurmctldHost|ControlMachine)[ \t]*=[ \t]*([^\s#(]+).*$", re.IGNORECASE)
_NODE = re.compile(r"^([ \t]*NodeName[ \t]*=[ \t]*(?!DEFAULT\b)[^\s#]+)", re.IGNORECASE)


def isolated(files: Mapping[str, str]) -> dict[str, str]:
    """The files with which slurmctld can be tried; only slurm.conf and what it includes differ."""
    texts = {name: files[name] for name in _read_as_slurm_conf(files)}
    accounts = any(_ACCOUNTS.search(text) for text in texts.values())
    dropped = _settings((*_OUTSIDE, *_ONLY_SLURMDBD_KNOWS) if accounts else _OUTSIDE)
    hosts: list[str] = []
    changed = {name: _lines(text, dropped, hosts) for name, text in texts.items()}
    changed[keys.FILE_SLURM_CONF] += _TAIL
    return {**files, **changed}


def host_name(slurm_conf: str, default: str) -> str:
    """The name under which slurmctld is the primary: it only starts on a machine that has it."""
    names = (match[1] for line in slurm_conf.splitlines() if (match := _HOST.match(line)))
    return next(names, default)


def _read_as_slurm_conf(files: Mapping[str, str]) -> list[str]:
    found, waiting = [], [keys.FILE_SLURM_CONF]
    while waiting:
        name = waiting.pop(0)
        if name in files and name not in found:
            found.append(name)
            waiting += [basename(path) for path in _INCLUDE.findall(files[name])]
    return found


def _settings(names: Sequence[str]) -> re.Pattern[str]:
    return re.compile(rf'(?<![^\s])(?:{"|".join(names)})[ \t]*=[ \t]*("[^"]*"|[^\s#]*)', re.IGNORECASE)


def _lines(text: str, dropped: re.Pattern[str], hosts: list[str]) -> str:
    return "".join(_line(line, dropped, hosts) for line in text.splitlines(keepends=True))


def _line(line: str, dropped: re.Pattern[str], hosts: list[str]) -> str:
    """The line without what leads outside; `hosts` collects the names of slurmctld's machines."""
    host = _HOST.match(line)
    if host is not None:
        hosts.append(host[1])
        return f"SlurmctldHost={host[1]}({LOOPBACK})\n" if len(hosts) == 1 else "#\n"
    if line.lstrip().startswith("#"):
        return line
    return _NODE.sub(rf"\1 NodeAddr={LOOPBACK}", dropped.sub("", line))


_AT_LINE = re.compile(r"in file (\S+) line (\d+)")
_NAMED = (
    re.compile(r"unrecognized key: (\S+)"),
    re.compile(r"(\w+) value \(.*\) is not a valid"),
    re.compile(r'Bad value ".*" for (\w+)'),
    re.compile(r"[Ii]nvalid (?:value for )?(\w+) "),
)
_PARTITION = re.compile(r"partition (\S+)")


def offending_line(said: str, files: Mapping[str, str]) -> str:
    """File, number and text of the line of which slurmctld's message speaks; empty when it cannot be told."""
    at = _AT_LINE.search(said)
    if at is not None and basename(at[1]) in files:
        lines = files[basename(at[1])].splitlines()
        number = int(at[2])
        if number <= len(lines):
            return _told(basename(at[1]), number, lines[number - 1])
    for pattern in _NAMED:
        if (match := pattern.search(said)) and (found := _find(rf"\b{re.escape(match[1])}[ \t]*=", files)):
            return found
    partition = _PARTITION.search(said)
    name = re.escape(partition[1].rstrip(".,:")) if partition else ""
    return _find(rf"^[ \t]*PartitionName[ \t]*=[ \t]*{name}(?=\s)", files) if name else ""


def _find(pattern: str, files: Mapping[str, str]) -> str:
    wanted = re.compile(pattern, re.IGNORECASE)
    for name, text in sorted(files.items(), key=lambda item: (item[0] != keys.FILE_SLURM_CONF, item[0])):
        for number, line in enumerate(text.splitlines(), 1):
            if not line.lstrip().startswith("#") and wanted.search(line):
                return _told(name, number, line)
    return ""


def _told(name: str, number: int, line: str) -> str:
    return f"{name} line {number}: {line.strip()[:200]}"
