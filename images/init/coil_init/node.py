"""What slurmd is told about its pod: limits and topology, merged into the text after ``--conf``.

spec: images 3.2, 4. The reference cuts the text when it adds a limit; here the result always is the
union of all keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .words import Word


@dataclass(frozen=True)
class Hardware:
    """What `slurmd -C` reports about the machine."""

    cores: int
    threads_per_core: int
    memory_mib: int


def parse_hardware(report: str) -> Hardware:
    """Read the output of ``slurmd -C``.

    Raises:
        ValueError: a number is missing.
    """
    pairs = dict(word.split("=", 1) for word in report.split() if "=" in word)
    try:
        sockets = int(pairs.get("Boards", "1")) * int(pairs["SocketsPerBoard"])
        return Hardware(
            cores=sockets * int(pairs["CoresPerSocket"]),
            threads_per_core=max(1, int(pairs["ThreadsPerCore"])),
            memory_mib=int(pairs["RealMemory"]),
        )
    except KeyError as missing:
        msg = f"slurmd -C does not report {missing}: {report.strip()!r}"
        raise ValueError(msg) from missing


def limit_keys(hardware: Hardware, pod_cpus: int, pod_memory_mib: int) -> dict[str, str]:
    """Return CoreSpecCount and MemSpecLimit that leave jobs what the pod may use.

    0 (or less) means no limit. One core always stays for jobs: slurmd refuses to reserve all of them,
    which a pod with fewer CPUs than one core has threads would ask for.
    """
    keys: dict[str, str] = {}
    if pod_cpus > 0:
        usable = max(1, pod_cpus // hardware.threads_per_core)
        if hardware.cores > usable:
            keys["CoreSpecCount"] = str(hardware.cores - usable)
    if pod_memory_mib > 0 and hardware.memory_mib > pod_memory_mib:
        keys["MemSpecLimit"] = str(hardware.memory_mib - pod_memory_mib)
    return keys


def merge_conf(conf: str, extra: Mapping[str, str]) -> str:
    """Return the node description `conf` with `extra` added.

    A key the description has already is kept: the user's word wins. A key with an empty value is left
    out: Slurm would take the next key for its value (``Topology= Weight=10``).
    """
    kept = [token for token in conf.split() if not token.endswith("=")]
    have = {token.split("=", 1)[0].lower() for token in kept}
    return " ".join([*kept, *(f"{key}={value}" for key, value in extra.items() if key.lower() not in have)])


def with_conf(words: Sequence[Word], extra: Mapping[str, str]) -> list[Word]:
    """Return the arguments of slurmd with `extra` merged into ``--conf``, which is added if need be."""
    out = list(words)
    for index in range(len(out) - 1, -1, -1):
        word = out[index]
        if word.text.startswith("--conf="):
            merged = _merged(Word(word.text[7:], word.shown[7:]), extra)
            out[index] = Word(f"--conf={merged.text}", f"--conf={merged.shown}")
            return out
        if word.text == "--conf" and index + 1 < len(out):
            out[index + 1] = _merged(out[index + 1], extra)
            return out
    added = merge_conf("", extra)
    return [*out, Word("--conf", "--conf"), Word(added, added)] if added else out


def _merged(word: Word, extra: Mapping[str, str]) -> Word:
    return Word(merge_conf(word.text, extra), merge_conf(word.shown, extra))


def whole_number(text: str | None, name: str) -> int:
    """Return the whole number of a variable; absent or empty is 0.

    Raises:
        ValueError: it is something else.
    """
    try:
        return int(text or "0")
    except ValueError:
        msg = f"{name} must be a whole number, not {text!r}"
        raise ValueError(msg) from None
