"""Command-line flags as the reference's programs take them, read into a frozen Struct.

One or two dashes, `--flag value` or `--flag=value`, bools without a value (spec: control-plane 15). Each
member of the Struct is one flag: `leader_elect` is `--leader-elect`, the member's type says how the text is
read, its `msgspec.Meta` has the help text and, if need be, a check. Typer is not used here: it knows no
single-dash long flags, which manifests written for the reference may hold.
"""

import typing
from collections.abc import Sequence
from typing import Any, TypeVar

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


def usage(settings: type[msgspec.Struct]) -> str:
    """One line for each flag: name, default and meaning."""
    lines = ["Flags:"]
    for field in msgspec.structs.fields(settings):
        _, description = _unwrap(field.type)
        default = ",".join(field.default) if isinstance(field.default, tuple) else field.default
        shown = "" if default == "" else f" (default {str(default).lower()})"
        lines.append(f"  --{_flag(field.name):<28} {description}{shown}")
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
