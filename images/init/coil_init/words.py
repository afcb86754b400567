"""Shell word rules for daemon options: quotes, backslashes and ``$NAME``, without a shell.

The operator passes text that is meant for a shell, such as ``--conf 'Features=a
Topology='"$SLINKY_TOPOLOGY"''`` (spec: images 4). Running a shell on it would also run whatever
``$(...)`` a user wrote into an option, so this reads the same words and refuses the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BLANKS = " \t\n"


class WordsError(ValueError):
    """The text is not a list of shell words, or needs a real shell."""


@dataclass(frozen=True)
class Word:
    """One argument: what the program gets, and what a log may show."""

    text: str
    shown: str
    """The same with ``$NAME`` unexpanded, so that a log never shows the value of a variable."""


@dataclass
class _Reader:
    """Reads words from `text`, left to right."""

    text: str
    environ: Mapping[str, str]
    at: int = 0
    words: list[Word] = field(default_factory=list)
    value: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    started: bool = False

    def read(self) -> list[Word]:
        while self.at < len(self.text):
            char = self._take()
            if char in _BLANKS:
                self._flush()
            elif char == "'":
                self._single()
            elif char == '"':
                self._double()
            elif char == "\\":
                self._escape()
            elif char == "$":
                self._variable(quoted=False)
            elif char == "`":
                self._refuse("command substitution with `")
            else:
                self._add(char)
        self._flush()
        return self.words

    def _take(self) -> str:
        char = self.text[self.at]
        self.at += 1
        return char

    def _add(self, value: str, shown: str | None = None) -> None:
        self.started = True
        self.value.append(value)
        self.shown.append(value if shown is None else shown)

    def _flush(self) -> None:
        if self.started:
            self.words.append(Word("".join(self.value), "".join(self.shown)))
        self.value, self.shown, self.started = [], [], False

    def _single(self) -> None:
        end = self.text.find("'", self.at)
        if end < 0:
            self._refuse("a ' without its partner")
        self._add(self.text[self.at : end])
        self.at = end + 1

    def _double(self) -> None:
        self._add("")
        while self.at < len(self.text):
            char = self._take()
            if char == '"':
                return
            if char == "\\" and self.text[self.at : self.at + 1] in tuple('$`"\\\n'):
                self._escape()
            elif char == "$":
                self._variable(quoted=True)
            elif char == "`":
                self._refuse("command substitution with `")
            else:
                self._add(char)
        self._refuse('a " without its partner')

    def _escape(self) -> None:
        if self.at == len(self.text):
            self._refuse("a \\ at the end")
        char = self._take()
        if char != "\n":
            self._add(char)

    def _variable(self, *, quoted: bool) -> None:
        rest = self.text[self.at :]
        braced = rest.startswith("{")
        match = _NAME.match(rest, 1 if braced else 0)
        if rest.startswith("(") or (braced and (match is None or rest[match.end() : match.end() + 1] != "}")):
            self._refuse("an expansion other than $NAME and ${NAME}")
        if match is None:
            self._add("$")
            return
        self.at += match.end() + (1 if braced else 0)
        value = self.environ.get(match.group(), "")
        if quoted:
            self._add(value, f"${match.group()}")
        else:
            self._fields(value, f"${match.group()}")

    def _fields(self, value: str, shown: str) -> None:
        """Add the value of an unquoted variable: blanks in it part words, an empty one adds none."""
        for piece in re.findall(rf"[{_BLANKS}]+|[^{_BLANKS}]+", value):
            if piece[0] in _BLANKS:
                self._flush()
            else:
                self._add(piece, shown)

    def _refuse(self, what: str) -> None:
        msg = f"cannot read the options: {what} is not supported (near character {self.at})"
        raise WordsError(msg)


def split(text: str, environ: Mapping[str, str]) -> list[Word]:
    """Split `text` into words as a POSIX shell would, expanding ``$NAME`` and ``${NAME}`` from `environ`.

    Unset variables are empty. File name patterns, ``~``, operators and comments have no meaning.

    Raises:
        WordsError: a quote is open at the end, or the text has ``$(...)``, backquotes or ``${NAME...}``.
    """
    return _Reader(text, environ).read()


def join(options: str, arguments: list[str]) -> str:
    """Join an options variable and container arguments with blanks (spec: images 4)."""
    return " ".join(part for part in (options, *arguments) if part)
