"""Which questions to ask of Wikidata's two searches for a record, the cheapest first. Pure.

``wbsearchentities`` finds labels and aliases in every language that begin with a text, whatever the case and the
accents; it forgives nothing else. The full-text search finds words in any order; it forgives typing errors only in
words that end with ``~``, and never in their first two letters.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal

from actors.match.names import parts
from actors.match.normalise import fold
from actors.match.readings import Reading, apart
from actors.match.records import Record

# The full-text search takes no more than 300 characters.
LONGEST_QUERY = 300
LONGEST_NAME = 120
MOST_WRITINGS = 2
PEOPLE = " haswbstatement:P31=Q5"
# How a word may begin instead, where the ear or the eye mistook it.
_BEGINNINGS = (
    ("ch", "h"),
    ("ch", "k"),
    ("kh", "h"),
    ("ph", "f"),
    ("th", "t"),
    ("ye", "e"),
    ("je", "e"),
    ("ya", "ia"),
    ("ts", "c"),
    ("sch", "sh"),
    ("sz", "s"),
    ("zh", "j"),
    ("c", "k"),
    ("v", "w"),
    ("g", "j"),
    ("i", "y"),
    ("j", "y"),
    ("z", "s"),
    ("b", "p"),
    ("d", "t"),
    ("m", "n"),
    ("q", "k"),
)
_UMLAUTS = (("ae", "a"), ("oe", "o"), ("ue", "u"), ("aa", "a"))
# Words that so many names have that they find nobody.
_COMMON_WORDS = """
    university universite universitat universidad college institute school company river city town press bank
    films film steel foods group holdings international the and of de la le les der die das von van saint
"""
_COMMON = frozenset(_COMMON_WORDS.split())


@dataclass(frozen=True)
class Query:
    """``begins``: a label begins so; ``words``: full text. ``page`` counts on where an answer was not complete."""

    search: Literal["begins", "words"]
    text: str
    page: int = 0

    @property
    def key(self) -> str:
        """Under which its answer is kept."""
        return f"{self.search} {self.page} {self.text}"

    @classmethod
    def read(cls, key: str) -> Query:
        """The question of a key."""
        search, page, text = key.split(" ", 2)
        return cls("begins" if search == "begins" else "words", text, int(page))

    @property
    def is_loose(self) -> bool:
        """Whether it looks for misspelt words."""
        return self.search == "words" and "~" in self.text

    def next_page(self) -> Query:
        """The same question, further on."""
        return Query(self.search, self.text, self.page + 1)

    def page_before(self) -> Query:
        """The same question, one page back."""
        return Query(self.search, self.text, self.page - 1)


def queries(record: Record) -> list[Query]:
    """In the order in which they are asked, until the record is decided."""
    means = record.meanings
    if not means:
        return []
    first = means[0]
    only = PEOPLE if record.kind == "person" else ""
    name = parts(first.name)
    if record.kind == "person" and any(word.endswith(".") for word in name[:-1]):
        found = [Query("words", _words(name) + only)]
    else:
        found = [Query("begins", first.name[:LONGEST_NAME])]
        found += [Query("begins", other) for other in _otherwise_written(means)]
        found += [Query("words", text + only) for text in [_all_words(first)] if text]
    found += [Query("words", text + only) for text in [loosely(first.name, LONGEST_QUERY - len(only))] if text]
    return list(dict.fromkeys(found))


def with_year(record: Record) -> Query | None:
    """For a name of many people: descriptions often give the years of a life."""
    born = record.dates.get("P569")
    if record.kind not in ("", "person") or born is None or not record.meanings:
        return None
    text = f"{_all_words(record.meanings[0])} {born.year}"
    return Query("words", text + (PEOPLE if record.kind == "person" else ""))


def _otherwise_written(means: tuple[Reading, ...]) -> list[str]:
    """Names of the record that are other words than the first: one that turns or shortens it is found by its words."""
    seen = {frozenset(fold(means[0].name).split())}
    found = []
    for other in means[1:]:
        words = frozenset(fold(other.name).split())
        if not any(words >= known or words <= known for known in seen):
            found.append(other.name[:LONGEST_NAME])
        seen.add(words)
    return list(dict.fromkeys([*_in_other_letters(means[0].name), *found]))[:MOST_WRITINGS]


def _in_other_letters(name: str) -> list[str]:
    """A Russian or Greek name in Latin letters: not every entity has a label in its own language."""
    latin = fold(name)
    return [latin] if latin.isascii() and latin and not _is_latin(name) else []


def _is_latin(name: str) -> bool:
    return all(not letter.isalpha() or unicodedata.name(letter, "").startswith("LATIN") for letter in name)


def _all_words(reading: Reading) -> str:
    said = [reading.name, *reading.within]
    # In small letters, so that no word is an operator.
    text = " ".join(_safe(word) for part in said for word in part.lower().replace("-", " ").split())
    return " ".join(text.split())[: LONGEST_QUERY - len(PEOPLE)]


def _words(name: list[str]) -> str:
    """What is written out of a person's name; the rest would find nobody."""
    return " ".join(word for word in name if not word.endswith("."))


def _safe(word: str) -> str:
    """Without the signs that the search would take for its own."""
    return "".join(letter if letter.isalnum() or letter in "'’" else " " for letter in word).strip()


def loosely(name: str, longest: int) -> str:
    """Any of the words, also misspelt. Who has most of them comes first in the answer."""
    written = _words_and_their_letters(apart(name))
    telling = [word for word in written if len(word) > 2 and word not in _COMMON] or written
    said = [f"{word}~" for word in telling]
    if len(telling) == 1:
        said += [f"{word}~" for word in written if len(word) > 3]
    said += [f"{other}~" for word in telling for other in _misheard(word)]
    if len(telling) == 1 and len(telling[0]) > 4:
        said.append(f"{telling[0][0]}*{telling[0][2:]}")
    text = ""
    for place, word in enumerate(dict.fromkeys(said)):
        longer = f"{text} OR {word}" if place else word
        if len(longer) > longest:
            break
        text = longer
    return text


def _words_and_their_letters(name: str) -> list[str]:
    """The folded words, and before them the words of another alphabet as they are."""
    own = [] if _is_latin(name) else [word for word in map(_safe, name.lower().split()) if word.isalpha()]
    return [*own, *fold(name).split()]


def _misheard(word: str) -> list[str]:
    # Letters that changed places where no slip is forgiven.
    found = [word[1] + word[0] + word[2:], word[0] + word[2] + word[1] + word[3:]] if len(word) > 3 else []
    for one, other in _BEGINNINGS:
        found += [b + word[len(a) :] for a, b in ((one, other), (other, one)) if word.startswith(a)]
    for written, meant in _UMLAUTS:
        if written in word:
            found.append(word.replace(written, meant))
    return found
