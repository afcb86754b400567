"""Kubernetes quantities: `1500m`, `8G`, `3Gi`, `1e3` (Kubernetes API, resource.Quantity)."""

import re
from decimal import ROUND_CEILING, ROUND_UP, Context, Decimal

from coil.build.errors import BuildError

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_FORM = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([eE])([+-]?\d+)|([KMGTPE]i|[numkMGTPE])?)")
_EXACT = Context(prec=80)
_NANO = Decimal(10) ** -9
_LARGEST = Decimal(2**63 - 1)
_BINARY_FLOOR = 1024


def value(text: str | float) -> Decimal:
    """The number a quantity stands for.

    Raises:
        BuildError: `text` is no quantity.
    """
    return _parse(text)[0]


def whole(text: str | float) -> int:
    """The quantity rounded up to a whole number."""
    return int(value(text).to_integral_value(ROUND_CEILING))


def mebibytes(text: str | float) -> int:
    """The quantity in MiB, rounded down."""
    return whole(text) // 1024**2


def canonical(text: str | float) -> str:
    """The spelling the API server gives back: the largest suffix that needs no fraction.

    Raises:
        BuildError: `text` is no quantity.
    """
    amount, style = _parse(text)
    if not amount:
        return "0"
    if style == "binary" and abs(amount) >= _BINARY_FLOOR:
        return _binary_text(int(amount.to_integral_value(ROUND_UP)))
    return _decimal_text(amount, exponent_form=style == "exponent")


def _parse(text: str | float) -> tuple[Decimal, str]:
    match = _FORM.fullmatch(str(text).strip())
    if isinstance(text, bool) or match is None:
        raise BuildError("quantity", f"{text!r} is no quantity; write for example 500m, 2, 1.5 or 4Gi")
    sign, number, exponent_mark, exponent, suffix = match.groups()
    amount = Decimal(number)
    style = "decimal"
    if exponent_mark:
        style = "exponent"
        amount = _EXACT.scaleb(amount, int(exponent))
    elif suffix in _BINARY:
        style = "binary"
        amount = _EXACT.multiply(amount, Decimal(1024 ** _BINARY[suffix]))
    else:
        amount = _EXACT.scaleb(amount, _DECIMAL[suffix or ""])
    amount = min(amount.quantize(_NANO, ROUND_UP, _EXACT), _LARGEST)
    return (-amount if sign == "-" else amount), style


def _binary_text(amount: int) -> str:
    power = 0
    while amount % _BINARY_FLOOR == 0 and power < len(_BINARY):
        amount //= _BINARY_FLOOR
        power += 1
    return f"{amount}{['', *_BINARY][power]}"


def _decimal_text(amount: Decimal, *, exponent_form: bool) -> str:
    sign, digits, exponent = amount.normalize(_EXACT).as_tuple()
    power = int(exponent)
    largest = power // 3 * 3 if exponent_form else min(power // 3 * 3, max(_SUFFIX))
    number = int("".join(map(str, digits))) * 10 ** (power - largest)
    suffix = f"e{largest}" if exponent_form and largest else "" if exponent_form else _SUFFIX[largest]
    return f"{'-' if sign else ''}{number}{suffix}"
