"""Command-line flags as the reference's programs take them, read into a frozen Struct.

One or two dashes, `--flag value` or `--flag=value`, bools without a value (spec: control-plane 15). Each
member of the Struct is one flag: `leader_elect` is `--leader-elect`, the member's type says how the text is
read, its `msgspec.Meta` has the help text and, if need be, a check. Typer is not used here: it knows no
single-dash long flags, which manifests written for the reference may hold.
"""

import typing
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


CHECK = "check"
"""Key in a member's `msgspec.Meta.extra` of a function that raises ValueError for an unusable value."""


class UsageError(Exception):
    """The command line is wrong; the text says which flag and why. Exit code 2."""


class HelpRequested(Exception):
    """`--help` was given; the message is the text to print. Exit code 0."""


def parse(settings: type[T], argv: Sequence[str]) -> T:
    """Read `argv` (without the program name) into `settings`; a flag given twice: the last one wins.

    Raises:
        UsageError: unknown flag, missing or unreadable value, or a word that belongs to no flag.
        HelpRequested: `-h` or `--help` was among the words.
    """
    flags = {_flag(field.name): field for field in msgspec.structs.fields(settings)}
    values: dict[str, Any] = {}
    words = list(argv)
    while words:
        name, text = _split(words.pop(0))
        if name in ("h", "help"):
            raise HelpRequested(usage(settings))
        field = flags.get(name)
        if field is None:
            raise UsageError(f"unknown flag --{name}; --help lists the flags")
        if text is None:
            text = _next_value(name, field.type, words)
        values[field.name] = _read(name, field.type, text)
    return settings(**values)


class Flag(NamedTuple):
    """A flag as people read of it; an empty default is none."""

    name: str
    default: str
    meaning: str


def described(settings: type[msgspec.Struct]) -> Iterator[Flag]:
    """Every flag, in the order of the members."""
    for field in msgspec.structs.fields(settings):
        default = field.default
        shown = ",".join(default) if isinstance(default, tuple) else _shown(default)
        yield Flag(_flag(field.name), shown, _unwrap(field.type)[1])


def _shown(default: Any) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)


def usage(settings: type[msgspec.Struct]) -> str:
    """One line for each flag: name, default and meaning."""
    lines = ["Flags:"]
    for flag in described(settings):
        default = f" (default {flag.default})" if flag.default else ""
        lines.append(f"  --{flag.name:<28} {flag.meaning}{default}")
    return "\n".join(lines)


def _flag(member: str) -> str:
    return member.replace("_", "-")


def _split(word: str) -> tuple[str, str | None]:
    """`--a=b` gives ("a", "b"), `-a` gives ("a", None)."""
    name = word.removeprefix("-").removeprefix("-")
    if name == word or not name or name.startswith(("-", "=")):
        raise UsageError(f"{word!r} is not a flag; a bool takes its value as --flag=false")
    name, has_value, text = name.partition("=")
    return name, text if has_value else None


def _next_value(name: str, wanted: Any, words: list[str]) -> str:
    if _unwrap(wanted)[0] is bool:
        return "true"
    if not words:
        raise UsageError(f"flag --{name} needs a value")
    return words.pop(0)


def _read(name: str, wanted: Any, text: str) -> Any:
    plain, _ = _unwrap(wanted)
    if typing.get_origin(plain) is tuple:
        return tuple(item.strip() for item in text.split(",") if item.strip())
    try:
        value = msgspec.convert(text, wanted, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"invalid value {text!r} for flag --{name}: {error}") from error
    try:
        _check(wanted, value)
    except ValueError as error:
        raise UsageError(f"--{name}: {error}") from error
    return value


def _check(annotated: Any, value: Any) -> None:
    """ValueError when the member's own check refuses the value."""
    for meta in getattr(annotated, "__metadata__", ()):
        if check := (meta.extra or {}).get(CHECK):
            check(value)


def _unwrap(annotated: Any) -> tuple[Any, str]:
    """The plain type and the description of `Annotated[type, Meta(description=...)]`."""
    if typing.get_origin(annotated) is typing.Annotated:
        plain, meta = typing.get_args(annotated)[:2]
        return plain, meta.description or ""
    return annotated, ""
