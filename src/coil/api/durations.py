"""Durations as Go writes them: `300ms`, `1.5h`, `-1m30s`."""

import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


def parse_duration(text: str) -> float:
    """Seconds of a duration; `0` needs no unit.

    Raises:
        ValueError: the text is no duration.
    """
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0.0
    if not body or _PART.sub("", body):
        raise ValueError(f"{text!r} is no duration; write for example 30s, 15m or 1h30m")
    total = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(body))
    return -total if text.startswith("-") else total
