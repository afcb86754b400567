"""The `--conf` argument of slurmd, from a NodeSet's `extraConf` (spec: nodeset 5.4).

Byte exact: the image joins all arguments into one text that a process manager and a shell read again.
"""

import re
from collections.abc import Iterable

from coil.api.nodeset import NodeSet

_TOPOLOGY = "'\"$SLINKY_TOPOLOGY\"'"
_WORD = re.compile(r"\w+")
_FEATURE_KEYS = frozenset({"Feature", "Features"})


def quoted_conf(nodeset: NodeSet) -> str:
    """The argument after `--conf`, in single quotes.

    Text with an item that has no `=` counts as no text at all, see `extra_conf_problem`.
    """
    extra = _extra(nodeset.spec.extra_conf)
    features = [nodeset.slurm_name, *(value for key in sorted(_FEATURE_KEYS) for value in extra.get(key, ()))]
    conf = {"Features": ",".join(_distinct(features)), "Topology": _TOPOLOGY}
    conf |= {key: ",".join(values) for key, values in extra.items() if key not in _FEATURE_KEYS}
    words = sorted((f"{key}={value}" for key, value in conf.items()), key=str.encode)
    return f"'{' '.join(words)}'"


def extra_conf_problem(nodeset: NodeSet) -> str:
    """What is wrong with `extraConf`, which then has no effect; empty when nothing is."""
    wrong = [word for word in nodeset.spec.extra_conf.split() if "=" not in word]
    if not wrong:
        return ""
    return f"spec.extraConf: {wrong[0][:80]!r} is not of the form Key=Value; the whole text is ignored"


def _extra(text: str) -> dict[str, list[str]]:
    words = text.split()
    if any("=" not in word for word in words):
        return {}
    extra: dict[str, list[str]] = {}
    for word in words:
        key, _, values = word.partition("=")
        extra.setdefault(_title(key), []).extend(values.split(","))
    return extra


def _title(key: str) -> str:
    """Upper case where a word begins, lower case elsewhere: MemSpecLimit becomes Memspeclimit."""
    return _WORD.sub(lambda word: word[0][:1].upper() + word[0][1:].lower(), key)


def _distinct(features: Iterable[str]) -> list[str]:
    return sorted({feature.strip() for feature in features if feature.strip()}, key=str.encode)
