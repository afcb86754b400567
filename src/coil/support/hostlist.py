"""Slurm hostlists: many node names in one short text.

`gpu-[001-010,012],login` names twelve nodes. Only plain hostlists are written, never nested brackets,
which Slurm refuses (spec: nodeset 22.3, Q20). Grammar: Slurm, `scontrol show hostnames`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

MAX_NAMES = 262_144
"""Most names one hostlist may stand for; Slurm itself stops at 65,536 nodes."""

_DIGITS = "0123456789"
_MAX_DIGITS = 9
"""Longest number put into brackets: Slurm reads it as a C integer, the rest stays in the prefix."""

_TERM = re.compile(r"((?:[^\[\],]++|\[[^\[\]]*+\])*+)(,|$)")
_BRACKETS = re.compile(r"\[([^\]]*)\]")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?", re.ASCII)
_UNSAFE = re.compile(r"[\[\],\s]")


class HostlistError(ValueError):
    """A text that Slurm would not take as a hostlist."""


def expand(text: str) -> list[str]:
    """Return the names a hostlist stands for, in its order and with its repetitions.

    Several brackets in one name give every combination, the last one turning fastest. Blanks around
    commas and empty terms are ignored, as in Slurm.

    Raises:
        HostlistError: unbalanced or nested brackets, a range that is not a number or runs backwards, or
            more than `MAX_NAMES` names.
    """
    names: list[str] = []
    for term in _terms(text):
        names += _expand_term(term) if "[" in term else [term]
        _check_size(len(names), text)
    return names


def compress(names: Iterable[str]) -> str:
    """Return a short plain hostlist of `names`, in canonical order and without repetitions.

    Equal sets of names give equal texts: prefixes are sorted, and numbers within their prefix.

    Raises:
        HostlistError: an empty name or one with blanks, commas or brackets, which would name other nodes.
    """
    numbers: defaultdict[str, list[str]] = defaultdict(list)
    for name in _checked(set(names)):
        cut = max(len(name.rstrip(_DIGITS)), len(name) - _MAX_DIGITS)
        # Slurm wants text before a bracket: a name of digits only is written as it is.
        cut = cut or len(name)
        numbers[name[:cut]].append(name[cut:])
    return ",".join(_prefix_term(prefix, numbers[prefix]) for prefix in sorted(numbers))


def _terms(text: str) -> Iterator[str]:
    position = 0
    while position <= len(text):
        match = _TERM.match(text, position)
        if match is None:
            raise HostlistError(f"hostlist {_shown(text)}: unbalanced or nested brackets")
        if term := match[1].strip():
            yield term
        if not match[2]:
            return
        position = match.end()


def _expand_term(term: str) -> list[str]:
    literal, *rest = _BRACKETS.split(term)
    names = [literal]
    for ranges, tail in zip(rest[::2], rest[1::2], strict=True):
        numbers = _expand_ranges(ranges, term)
        _check_size(len(names) * len(numbers), term)
        names = [f"{name}{number}{tail}" for name in names for number in numbers]
    return names


def _expand_ranges(ranges: str, term: str) -> list[str]:
    numbers: list[str] = []
    for part in ranges.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise HostlistError(f"hostlist {_shown(term)}: {part!r} is no number and no range of numbers")
        low, high = match[1], match[2] or match[1]
        first, last, width = int(low), int(high), len(low)
        if last < first:
            raise HostlistError(f"hostlist {_shown(term)}: range {part!r} runs backwards")
        _check_size(last - first + 1, term)
        numbers += [f"{number:0{width}d}" for number in range(first, last + 1)]
    return numbers


def _check_size(size: int, text: str) -> None:
    if size > MAX_NAMES:
        raise HostlistError(f"hostlist {_shown(text)} stands for more than {MAX_NAMES} names")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")  # noqa: PLR2004


def _checked(names: set[str]) -> set[str]:
    # One search over all names: a search for each is most of the work at 10,000 names.
    if "" in names or _UNSAFE.search("\0".join(names)):
        wrong = next(name for name in names if not name or _UNSAFE.search(name))
        raise HostlistError(f"node name {_shown(wrong)} is empty or has blanks, commas or brackets")
    return names


def _prefix_term(prefix: str, numbers: list[str]) -> str:
    """Write the names of one prefix: the bare name first, then one bracket for all numbers."""
    bare = [prefix] if "" in numbers else []
    runs = _runs([number for number in numbers if number])
    if len(runs) == 1 and "-" not in runs[0]:
        return ",".join([*bare, prefix + runs[0]])
    return ",".join([*bare, f"{prefix}[{','.join(runs)}]"] if runs else bare)


def _runs(numbers: list[str]) -> list[str]:
    """Join consecutive numbers written with the same padding: 001, 002, 003 become 001-003."""
    padded = {len(number) for number in numbers if number[0] == "0"} - {1}
    by_width: defaultdict[int, set[int]] = defaultdict(set)
    for number in numbers:
        by_width[len(number) if len(number) in padded else 0].add(int(number))
    return [run for width in sorted(by_width) for run in _runs_of_width(by_width[width], width)]


def _runs_of_width(values: set[int], width: int) -> Iterator[str]:
    firsts = sorted(value for value in values if value - 1 not in values)
    lasts = sorted(value for value in values if value + 1 not in values)
    for first, last in zip(firsts, lasts, strict=True):
        low = f"{first:0{width}d}" if width else str(first)
        yield low if first == last else f"{low}-{last:0{width}d}"
