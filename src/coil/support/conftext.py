"""Text of Slurm's configuration files: sections, properties, and options merged with a user's.

A file is a list of sections; each starts with a line `#` and a line `### TITLE ###` (spec: control-plane
3.7). Values are written raw, so the one rule here that protects the file is that a value stays on its own
line (invariant I9).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

MERGED_TITLE = "MERGED CONFIG"
"""Title of the section that repeats option lists with the user's and the operator's options."""

_WORD = re.compile(r"[^\s#=,;'\"\\]+")
_LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\0"


class ConfTextError(ValueError):
    """A value that would spill over its own line of a configuration file."""


class Section(NamedTuple):
    """A titled part of a configuration file; left out of the file when it has no lines."""

    title: str
    lines: Sequence[str]


def property_line(key: str, value: object, *, separator: str = "=") -> str:
    """Write one property; sshd_config uses a blank as the separator.

    Raises:
        ConfTextError: the value has a line break or ends in a backslash, which would add a line or swallow
            the next one.
    """
    return f"{key}{separator}{single_line(str(value), key)}"


def single_line(value: str, what: str) -> str:
    r"""Return `value` if it stays on one line of a configuration file.

    Raises:
        ConfTextError: it has a line break (Slurm breaks at `\n` only, editors and reviewers at more) or
            ends in a backslash, with which Slurm joins the next line.
    """
    if any(mark in value for mark in _LINE_BREAKS):
        raise ConfTextError(f"{what}: the value {value[:80]!r} has a line break; write it on one line")
    if value.rstrip(" \t").endswith("\\"):
        raise ConfTextError(
            f"{what}: the value {value[:80]!r} ends in a backslash, which joins the next line"
        )
    return value


def single_word(value: str, what: str) -> str:
    """Return `value` if it is one word: a blank after it would start another parameter on the line.

    Raises:
        ConfTextError: it is empty, or has a blank or a character that Slurm reads as more than text.
    """
    if not _WORD.fullmatch(single_line(value, what)):
        raise ConfTextError(f"{what}: {value[:80]!r} must be one word, without quotes or any of , ; # = \\")
    return value


def render(sections: Iterable[Section]) -> str:
    """Return the text of a file, ending in one newline; sections without lines are left out."""
    lines = [line for title, body in sections if body for line in ("#", f"### {title} ###", *body)]
    return "\n".join([*lines, ""])


def parse_options(text: str) -> dict[str, str]:
    """Read `Key=Value` lines of a user's configuration text; keys come back in lower case.

    Comments, continued lines and repeated keys (the last one counts) are treated as in Slurm. Lines whose
    value holds a blank other than around commas are skipped: they are node or partition lines, not option
    lists (spec: control-plane 3.8 with fix Q8).
    """
    options: dict[str, str] = {}
    for line in _logical_lines(text):
        key, _, value = line.partition("=")
        key = key.strip().lower()
        value = ",".join(part.strip() for part in value.split(",")).strip()
        if key and value and not any(character.isspace() for character in value):
            options[key] = value
    return options


def merge_options(mandatory: Iterable[str], user: str) -> str:
    """Return the operator's options with those of the user's it has no opinion on, sorted bytewise.

    An option is known by the text before its `=`, whatever its case; the operator's wins, then the user's
    first. The name is written in lower case, the value as the user wrote it, since paths are case-sensitive
    (spec: control-plane 3.8 with fix Q8b).
    """
    merged = {_option_key(option): option for option in mandatory}
    for option in filter(None, user.split(",")):
        name, equals, value = option.partition("=")
        merged.setdefault(name.lower(), f"{name.lower()}{equals}{value}")
    return ",".join(sorted(merged.values(), key=str.encode))


def merged_section(extra_conf: str, mandatory: Mapping[str, Sequence[str]]) -> Section:
    """Return the section that repeats each mandatory option list which `extra_conf` also sets.

    Slurm takes the last occurrence of a parameter, so without it a user's list would drop the operator's
    options. `mandatory` maps a parameter, spelled as it shall be written, to the operator's options.
    """
    given = parse_options(extra_conf)
    return Section(
        MERGED_TITLE,
        [
            property_line(name, merge_options(mandatory[name], given[name.lower()]))
            for name in sorted(mandatory, key=str.encode)
            if name.lower() in given
        ],
    )


def _option_key(option: str) -> str:
    return option.partition("=")[0].lower()


def _logical_lines(text: str) -> Iterable[str]:
    """Drop comments and join lines that end in a backslash, as Slurm's parser does."""
    pending = ""
    for raw in text.split("\n"):
        line = raw.removesuffix("\r").partition("#")[0].rstrip()
        if line.endswith("\\"):
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending
