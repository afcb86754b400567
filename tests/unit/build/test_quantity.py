"""Quantities as Kubernetes reads and writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coil.build import quantity
from coil.build.errors import BuildError


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1500m", "1500m"),
        ("1000m", "1"),
        ("0.5", "500m"),
        (".5", "500m"),
        (2, "2"),
        (0.25, "250m"),
        ("100000", "100k"),
        ("1000k", "1M"),
        ("8G", "8G"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.1Mi", "104858"),
        ("1e3", "1e3"),
        ("12E4", "120e3"),
        ("1E", "1E"),
        ("0", "0"),
        ("-0", "0"),
        ("-1500m", "-1500m"),
        ("0.1n", "1n"),
        ("9Ei", "9223372036854775807"),
    ],
)
def test_canonical_spelling(text: str | float, canonical: str) -> None:
    assert quantity.canonical(text) == canonical


@pytest.mark.parametrize("text", ["", "12Gx", "1 Gi", "Gi", "1.2.3", "0x10", True, "1ee3"])
def test_what_is_no_quantity_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BuildError, match="is no quantity; write for example"):
        quantity.canonical(text)


def test_cpus_are_rounded_up_and_memory_down() -> None:
    assert quantity.whole("1500m") == 2
    assert quantity.mebibytes("1G") == 953
    assert quantity.mebibytes("3Gi") == 3072


@given(st.integers(0, 10**15), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi", "n", "u"]))
def test_the_canonical_spelling_says_the_same_number(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    canonical = quantity.canonical(text)
    assert quantity.value(canonical) == quantity.value(text)
    assert quantity.canonical(canonical) == canonical
