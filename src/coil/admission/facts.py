"""What the rules may know besides the object itself, as plain data."""

from collections.abc import Mapping

import msgspec

Files = Mapping[str, str]


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Names of objects to read; an empty claim is none."""

    config_maps: frozenset[str] = frozenset()
    claim: str = ""


class Lookups(msgspec.Struct, frozen=True, kw_only=True):
    """What was read.

    Attributes:
        config_maps: Files of each ConfigMap; binary ones are empty texts.
        unreadable: Why a ConfigMap could not be read.
        claim_modes: Access modes of the claim; None when there is none (yet).
        claim_error: Why the claim could not be read.
    """

    config_maps: Mapping[str, Files] = {}
    unreadable: Mapping[str, str] = {}
    claim_modes: tuple[str, ...] | None = None
    claim_error: str = ""


NOTHING = Lookups()
