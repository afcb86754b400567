"""What a check of one object finds."""

import re
from collections.abc import Iterable, Sequence

import msgspec

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class MalformedError(Exception):
    """The object cannot be read: the text says where and why. Code 400 (spec: control-plane 13)."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Findings about one object: any error refuses it, warnings are shown to who sent it.

    Each text starts with the path of a member, as in `spec.controllerRef.name: must be set`.
    """

    errors: Sequence[str] = ()
    warnings: Sequence[str] = ()


def verdict(errors: Iterable[str], warnings: Iterable[str], before: Iterable[str] = ()) -> Verdict:
    """Findings without repetitions, errors that the object had `before` turned into warnings.

    A rule that came later than an object must not stop other changes to it.
    """
    known = frozenset(before)
    found = distinct(errors)
    tolerated = [text for text in found if text in known]
    refused = [text for text in found if text not in known]
    return Verdict(errors=refused, warnings=distinct([*tolerated, *warnings]))


def distinct(texts: Iterable[str]) -> list[str]:
    """The texts on one line each, in order, the first of equal ones."""
    return list(dict.fromkeys(_CONTROL.sub(" ", text) for text in texts))


def one_text(errors: Sequence[str]) -> str:
    """The errors as one message: `a`, or `[a, b]` (spec: control-plane 13)."""
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
