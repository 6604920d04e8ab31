"""What a cut text is looked at with, and what is found in it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from decimal import Decimal

from actors.scrape.price import words
from actors.scrape.price.currencies import Mark
from actors.scrape.price.tokens import Token


@dataclass
class Amount:
    """A number that may be the price. ``depth``: it stands in brackets. ``place`` is its index among the tokens."""

    text: str
    place: int
    end: int
    depth: int
    segment: int
    marks: list[Mark] = field(default_factory=list)
    times: int = 1
    plus: int = 0  # of 1万2,800: what stands behind the ten thousands
    rounded: bool = False
    role: str = ""
    unclear: bool = False
    start: int = 0
    joined: bool = False  # to the amount before it, by a dash or a word: a range


@dataclass
class Found:
    """Everything that was found in a text."""

    amounts: list[Amount] = field(default_factory=list)
    quantities: set[int] = field(default_factory=set)
    shares: list[Decimal] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)  # words that are not known
    loose_marks: int = 0
    odd: list[str] = field(default_factory=list)  # what makes the text unsafe to read
    dates: int = 0
    ids: int = 0


class View:
    """The tokens by their place; a place outside of the text is nothing."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.found = Found()
        self._used: set[int] = set()
        self._at: dict[int, Amount] = {}

    def _kind(self, at: int) -> str:
        return self.tokens[at].kind if 0 <= at < len(self.tokens) else ""

    def _tight(self, at: int) -> bool:
        return 0 <= at < len(self.tokens) and self.tokens[at].tight

    def _is_sign(self, at: int, text: str) -> bool:
        return self._kind(at) == "sign" and self.tokens[at].text == text

    def _is_letters(self, at: int) -> bool:
        """A word of a script that parts its words by spaces."""
        return self._kind(at) == "word" and self.tokens[at].text[0] < "\u3040"

    def _is_x(self, at: int) -> bool:
        return self._kind(at) in {"word", "sign"} and self.tokens[at].low in {"x", "×"}

    def _is_known(self, at: int) -> bool:
        return self.tokens[at].low in words.ALL

    def _text(self, at: int, length: int) -> tuple[int, str] | None:
        """The next ``length`` words in lower case, and the tokens they take; points and dashes between are passed."""
        parts: list[str] = []
        place = at
        while len(parts) < length:
            if self._kind(place) == "sign" and self.tokens[place].text in {".", "-"} and parts:
                place += 1
                continue
            if not (self._kind(place) == "word" or self._is_sign(place, "&")) or place in self._used:
                return None
            parts.append(self.tokens[place].low)
            place += 1
        return place - at, " ".join(parts)

    def _phrase(self, at: int, known: Collection[str], longer_than: int = 0) -> int:
        """How many tokens the longest known phrase takes that begins here; 0 for none."""
        for length in range(3, 0, -1):
            phrase = self._text(at, length)
            if phrase is not None and phrase[1] in known and phrase[0] > longer_than:
                return phrase[0]
        return 0
