"""Rules that several kinds share. Each yields the errors, none when the object keeps the rule."""

import re
from collections.abc import Iterator

from coil.api.meta import ObjectMeta, SecretKeySelector
from coil.support.conftext import ConfTextError, single_line, single_word

LABEL_LENGTH = 63
"""Most characters of a Service, a host name or a label's value (Kubernetes API)."""
WORKLOAD_LENGTH = 52
"""Most characters of a StatefulSet's name: its pods carry it, a dash and ten more in one label."""
SUBDOMAIN_LENGTH = 253
_GENERATED = "xxxxx"

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def is_subdomain(text: str) -> bool:
    """Whether Kubernetes takes the text as the name of an object (DNS-1123 subdomain)."""
    return len(text) <= SUBDOMAIN_LENGTH and _SUBDOMAIN.fullmatch(text) is not None


def full_name(metadata: ObjectMeta) -> str:
    """The name, or one as long as the name that the API server will make up."""
    return metadata.name or metadata.generate_name + _GENERATED


def needed(where: str, text: str) -> Iterator[str]:
    """The member must not be empty."""
    if not text:
        yield f"{where}: must be set"


def one_line(where: str, text: str) -> Iterator[str]:
    """The text goes into a line of a configuration file and must not add another (I9, Q9)."""
    try:
        single_line(text, where)
    except ConfTextError as error:
        yield str(error)


def one_word(where: str, text: str) -> Iterator[str]:
    """The text is the value of a parameter in slurm.conf; a blank there starts the next parameter (I9)."""
    try:
        if text:
            single_word(text, where)
    except ConfTextError as error:
        yield str(error)


def short(where: str, made: str, limit: int, what: str) -> Iterator[str]:
    """A name that is made from members must fit (field case REG-17)."""
    if len(made) > limit:
        excess = len(made) - limit
        yield (
            f"{where}: makes the {what} {made[:80]!r}, {excess} characters longer than the {limit} "
            "that Kubernetes allows"
        )


def no_dots(where: str, name: str, what: str) -> Iterator[str]:
    """The names of some objects must not have dots, as those of custom resources may."""
    if "." in name:
        yield f"{where}: {name[:80]!r} has a dot, which the name of a {what} must not have"


def unchanged(where: str, old: object, new: object) -> Iterator[str]:
    """The member is immutable."""
    if old != new:
        yield f"{where}: cannot be changed; it is {_shown(old)}, not {_shown(new)}"


def same_key(old: SecretKeySelector | None, new: SecretKeySelector | None) -> Iterator[str]:
    """The auth/jwt key in effect is immutable; it may move between its two fields."""
    if old != new:
        yield (
            f"spec.jwtKeyRef: cannot be changed; it is {_reference(old)}, not {_reference(new)}; "
            "to use another key, change what the Secret holds"
        )


def _reference(ref: SecretKeySelector | None) -> str:
    if ref is None:
        return "unset"
    optional = "" if ref.optional is None else f", optional: {str(ref.optional).lower()}"
    return f"key {ref.key!r} of Secret {ref.name!r}{optional}"


def _shown(value: object) -> str:
    if value is None:
        return "unset"
    return str(value).lower() if isinstance(value, bool) else repr(value)[:90]
