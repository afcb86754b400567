"""Shell word rules without a shell (spec: images 4, 7.3)."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.init.coil_init.words import WordsError, join, split

ENV = {"A": "x", "BLANKS": " one  two ", "EMPTY": "", "SECRET": "s3cr3t"}


def texts(text: str) -> list[str]:
    return [word.text for word in split(text, ENV)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  \t\n ", []),
        ("a  b\tc", ["a", "b", "c"]),
        ("'a b' c", ["a b", "c"]),
        ("a' b'\"c d\"e", ["a bc de"]),
        ("'' \"\"", ["", ""]),
        ("a\\ b", ["a b"]),
        ('"a\\"b\\\\c\\d"', ['a"b\\c\\d']),
        ("a\\\nb", ["ab"]),
        ("$A", ["x"]),
        ("p${A}s $A$A", ["pxs", "xx"]),
        ("\"$A b\" '$A'", ["x b", "$A"]),
        ("\\$A", ["$A"]),
        ("$BLANKS", ["one", "two"]),
        ("a${BLANKS}b", ["a", "one", "two", "b"]),
        ('"$BLANKS"', [" one  two "]),
        ("$EMPTY $UNSET", []),
        ('"$EMPTY"', [""]),
        ("a$", ["a$"]),
        ("5$ $1", ["5$", "$1"]),
        ("a;b|c *.conf ~ #d", ["a;b|c", "*.conf", "~", "#d"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


@pytest.mark.parametrize("text", ["'a", '"a', "a\\", "$(id)", "`id`", '"`id`"', '"$(id)"', "${A:-b}", "${A"])
def test_what_needs_a_shell_is_refused(text: str) -> None:
    with pytest.raises(WordsError, match="not supported"):
        split(text, ENV)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"))))
def test_quoted_words_come_back_as_they_were(words: list[str]) -> None:
    assert texts(shlex.join(words)) == words


def test_a_log_never_shows_the_value_of_a_variable() -> None:
    words = split("--token=$SECRET \"$SECRET\" '$A' $BLANKS", ENV)
    assert [word.shown for word in words] == ["--token=$SECRET", "$SECRET", "$A", "$BLANKS", "$BLANKS"]


def test_options_and_arguments_are_joined_with_blanks() -> None:
    assert join("-v", ["--conf", "'a b'"]) == "-v --conf 'a b'"
    assert join("", []) == ""
