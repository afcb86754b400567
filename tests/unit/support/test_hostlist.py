"""Hostlists: what is written is read back, and nothing but plain hostlists is written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coil.support.hostlist import MAX_NAMES, HostlistError, compress, expand

PREFIXES = st.sampled_from(["", "a", "gpu-", "ip-10-0-", "x1y", "n.example"])
NUMBERS = st.one_of(
    st.just(""),
    st.integers(0, 120).map(str),
    st.tuples(st.integers(0, 120), st.integers(1, 5)).map(lambda pair: f"{pair[0]:0{pair[1]}d}"),
    st.integers(0, 10**12).map(str),
)
NAMES = st.tuples(PREFIXES, NUMBERS, st.sampled_from(["", "", "-b"])).map("".join).filter(bool)


@given(st.lists(NAMES, max_size=60))
def test_expand_of_compress_gives_each_name_once(names: list[str]) -> None:
    expanded = expand(compress(names))
    assert len(expanded) == len(set(expanded))
    assert set(expanded) == set(names)


@given(st.lists(NAMES, max_size=30), st.randoms(use_true_random=False))
def test_equal_sets_give_equal_texts(names: list[str], random: object) -> None:
    shuffled = sorted(names, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert compress(shuffled) == compress(names) == compress(expand(compress(names)))


@given(st.lists(NAMES, max_size=60))
def test_brackets_never_nest_and_always_follow_text(names: list[str]) -> None:
    text = compress(names)
    depth = 0
    for before, character in zip(f",{text}", text, strict=False):
        depth += {"[": 1, "]": -1}.get(character, 0)
        assert depth in {0, 1}
        assert character != "[" or before not in ",]"


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["login"], "login"),
        (["gpu-7"], "gpu-7"),
        ([*(f"gpu-{n:03d}" for n in range(1, 11)), "gpu-012", "login"], "gpu-[001-010,012],login"),
        (["a9", "a10", "a11"], "a[9-11]"),
        (["a99", "a100", "a099"], "a[99,099-100]"),
        (["ip-10-0-1-2", "ip-10-0-1-3"], "ip-10-0-1-[2-3]"),
        (["foo-bar", "foo-0", "foo-00"], "foo-[0,00],foo-bar"),
        (["5", "6"], "5,6"),
        (["a1", "a1"], "a1"),
        (["n1234567890", "n1234567891"], "n1[234567890-234567891]"),
    ],
)
def test_compress(names: list[str], text: str) -> None:
    assert compress(names) == text
    assert set(expand(text)) == set(names)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        (" a1 , a2 ", ["a1", "a2"]),
        ("a,,b,", ["a", "b"]),
        ("gpu-[8-10]", ["gpu-8", "gpu-9", "gpu-10"]),
        ("gpu-[008-010,012]", ["gpu-008", "gpu-009", "gpu-010", "gpu-012"]),
        ("rack[0-1]n[1-2]", ["rack0n1", "rack0n2", "rack1n1", "rack1n2"]),
        ("a[1-2]x", ["a1x", "a2x"]),
        ("b,a,b", ["b", "a", "b"]),
    ],
)
def test_expand(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a[1", "unbalanced or nested"),
        ("a]1", "unbalanced or nested"),
        ("foo-[0-[1-2],1-1]", "unbalanced or nested"),
        ("foo-[bar-0,0]", "'bar-0' is no number"),
        ("a[]", "'' is no number"),
        ("a[1-2-3]", "'1-2-3' is no number"),
        ("a[٣]", "is no number"),
        ("a[3-1]", "runs backwards"),
        ("a[0-999999999]", f"more than {MAX_NAMES}"),
        ("a[0-9999][0-9999]", f"more than {MAX_NAMES}"),
        ("a[0-200000],b[0-200000]", f"more than {MAX_NAMES}"),
    ],
)
def test_a_wrong_text_is_told_and_never_expanded(text: str, complaint: str) -> None:
    with pytest.raises(HostlistError, match=complaint):
        expand(text)


@pytest.mark.parametrize("name", ["", "a b", "a,b", "a[1-2]", "a\n", "a\tb"])
def test_a_name_that_would_be_read_otherwise_is_refused(name: str) -> None:
    with pytest.raises(HostlistError, match="node name"):
        compress(["good", name])


@pytest.mark.timeout(5)
@pytest.mark.parametrize("text", ["[" * 50_000, "a[1," * 20_000, "a" * 100_000 + "[", "[1]" * 30_000 + "["])
def test_hostile_texts_are_refused_before_long(text: str) -> None:
    """Work that grows with the square of the length would meet the time limit."""
    with pytest.raises(HostlistError):
        expand(text)


def test_ten_thousand_names_are_one_range() -> None:
    names = [f"gpu-{ordinal:05d}" for ordinal in range(10_000)]
    assert compress(names) == "gpu-[00000-09999]"
    assert expand("gpu-[00000-09999]") == names
