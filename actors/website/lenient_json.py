"""Read JSON as models write it: comments, other quotes, bare keys, missing and trailing commas, Python's words.

Libraries that repair JSON complete what was cut off, and a completed answer cannot be told from a whole one. Here only
closing brackets may be missing at the very end; a text or a word that is cut, or a text with quotes inside that are not
escaped, raises Unreadable. Work is linear in the text, nesting is bounded.
"""

from __future__ import annotations

import json
import re
from typing import Any

DEEPEST = 40
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "”": "”", "„": "”", "‘": "’", "«": "»", "\uff02": "\uff02"}
# A typographic opening quote may be closed by any of its kind: languages disagree.
_CLOSERS = {"“": '”“"', "”": '”"', "„": '“”"', "‘": "’‘'"}
_SPACE = re.compile(r"(?:[\s\ufeff\u200b]+|//[^\n]*|/\*(?s:.*?)\*/|#[^\n]*)+")
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$ -]{0,60}?(?=\s*:)")
_WORD = re.compile(r"[A-Za-z_+-][\w.+-]*|[\d.][\w.+-]*")
_WORDS = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "undefined": None,
    "nan": None,
    "infinity": None,
    "-infinity": None,
    "+infinity": None,
    "inf": None,
    "-inf": None,
}
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
# What may follow a text that has ended, commas being forgotten at times; anything else shows that its last quote was
# not the end.
_AFTER_TEXT = re.compile(r"\s*+(?:[,:\]}]|//|/\*|#|$|```)|\s++[\"'“‘]|[^\S\n]*+\n\s*+[A-Za-z_]")


class Unreadable(ValueError):
    """No value can be read here; the message says why."""


def read_value(text: str, start: int, *, cut: bool = False) -> tuple[Any, int]:
    """The value that begins at ``start`` and where it ends; raises Unreadable.

    ``cut``: the text is known to end too early, and so does a value without its closing brackets.
    """
    return _Reader(text, start, cut).read()


class _Reader:
    def __init__(self, text: str, start: int, cut: bool) -> None:
        self._text = text
        self._at = start
        self._cut = cut

    def read(self) -> tuple[Any, int]:
        return self._value(0), self._at

    def _space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        if found:
            self._at = found.end()

    def _peek(self) -> str:
        self._space()
        return self._text[self._at : self._at + 1]

    def _closed(self, closer: str) -> bool:
        """Whether the list or object ends here: by its bracket, or because nothing follows."""
        sign = self._peek()
        while sign == ",":
            self._at += 1
            sign = self._peek()
        if sign == closer:
            self._at += 1
            return True
        if not sign and self._cut:
            raise Unreadable("it is cut off: answer in fewer words")
        return not sign or self._text.startswith("```", self._at)

    def _value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise Unreadable("it is nested too deeply")
        sign = self._peek()
        if sign == "{":
            return self._object(depth)
        if sign == "[":
            return self._list(depth)
        if sign in _QUOTES and sign:
            return self._quoted(sign)
        return self._word()

    def _object(self, depth: int) -> dict[str, Any]:
        self._at += 1
        found: dict[str, Any] = {}
        while not self._closed("}"):
            key = self._key()
            if self._peek() != ":":
                raise Unreadable(f'a colon is missing after "{key[:60]}"')
            self._at += 1
            found[key] = self._value(depth + 1)
        return found

    def _list(self, depth: int) -> list[Any]:
        self._at += 1
        found: list[Any] = []
        while not self._closed("]"):
            found.append(self._value(depth + 1))
        return found

    def _key(self) -> str:
        sign = self._peek()
        if sign in _QUOTES:
            return self._quoted(sign)
        bare = _BARE_KEY.match(self._text, self._at)
        if not bare:
            raise Unreadable(f"a key was expected before {self._text[self._at : self._at + 30]!r}")
        self._at = bare.end()
        return bare.group().strip()

    def _quoted(self, opening: str) -> str:
        closers = _CLOSERS.get(opening, _QUOTES[opening])
        start = at = self._at + 1
        while at < len(self._text):
            sign = self._text[at]
            if sign == "\\":
                at += 2
                continue
            if sign in closers and self._ends_text(opening, at):
                self._at = at + 1
                return _unescaped(self._text[start:at])
            at += 1
        raise Unreadable("it is cut off within a text")

    def _ends_text(self, opening: str, at: int) -> bool:
        if _AFTER_TEXT.match(self._text, at + 1):
            return True
        if opening in "'‘":
            # an apostrophe
            return False
        if opening in _CLOSERS and self._text[at] != '"':
            return False
        raise Unreadable(f"a quote within a text is not escaped: {self._text[max(at - 20, 0) : at + 20]!r}")

    def _word(self) -> Any:
        found = _WORD.match(self._text, self._at)
        if not found:
            raise Unreadable(f"a value was expected before {self._text[self._at : self._at + 30]!r}")
        word = found.group()
        self._at = found.end()
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        if self._at >= len(self._text):
            raise Unreadable("it is cut off within a value")
        if not _NUMBER.fullmatch(word) or len(word) > 40:
            raise Unreadable(f"{word[:40]!r} is neither text nor number")
        return _number(word)


def _number(word: str) -> int | float:
    try:
        return int(word)
    except ValueError:
        return float(word)


def _unescaped(raw: str) -> str:
    if "\\" not in raw:
        return raw
    try:
        text = json.loads(f'"{raw}"', strict=False)
    except ValueError:
        text = _ESCAPE.sub(_meant, raw)
    return str(text)


def _meant(escape: re.Match[str]) -> str:
    four, two, sign = escape.groups()
    if four or two:
        return chr(int(four or two, 16))
    return _ESCAPES.get(sign, sign)
