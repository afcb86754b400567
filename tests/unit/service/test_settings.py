"""Claims about listen addresses."""

import pytest

from coil.service.settings import Address, address


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (":8080", Address(None, 8080)),
        ("localhost:6060", Address("localhost", 6060)),
        ("[::1]:0", Address("::1", 0)),
        ("0", None),
        ("", None),
    ],
)
def test_addresses_are_read_as_go_writes_them(text: str, wanted: Address | None) -> None:
    assert address(text) == wanted


@pytest.mark.parametrize("text", ["8080", "host:", ":x", ":70000", ":-1", ":٣"])
def test_an_unusable_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        address(text)
