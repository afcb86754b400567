"""Hashes are exact: another value would make every pod of a running cluster anew."""

from coil.build.hashes import byte_hash, map_hash

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_worked_values_of_the_specification() -> None:
    assert map_hash({"slurm.key": b"abc"}) == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
    assert map_hash({"jwt.key": b"def"}) == "cb8379ac2098aa165029e3938a51da0bcecfc008fd6795f401178647f96c5b34"


def test_an_absent_value_hashes_as_no_bytes() -> None:
    assert byte_hash(None) == EMPTY
    assert byte_hash(b"") == EMPTY


def test_nothing_to_hash_gives_no_text() -> None:
    assert map_hash(None) == ""
    assert map_hash({}) == ""
    assert map_hash({"a": ""}) == ""


def test_values_are_joined_in_bytewise_order_of_their_keys() -> None:
    assert map_hash({"b": "2", "a": "1", "C": "0"}) == byte_hash(b"012")
    assert map_hash({"\ue000": "1", "\U00010000": "2"}) == byte_hash(b"12")
