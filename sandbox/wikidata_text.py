"""How Wikidata's search index reads text: one folded line for prefixes, words for full text."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# What Lucene's ASCII folding replaces and Unicode does not decompose. It leaves other alphabets alone.
_LETTERS = {"ß": "ss", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "æ": "ae", "œ": "oe", "þ": "th", "ı": "i", "ŋ": "n"}
_SPACES = str.maketrans(dict.fromkeys("'’ʼ_-", " "))
_BREAKS = str.maketrans(dict.fromkeys("_.():", " "))
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+(?:['’][^\W_]+)*")


@lru_cache(maxsize=50_000)
def folded(text: str) -> str:
    """Lower case, Latin letters without accents."""
    return "".join(map(_ascii, unicodedata.normalize("NFC", text).lower()))


@lru_cache(maxsize=50_000)
def line(text: str) -> str:
    """A label as the prefix index has it: hyphens and apostrophes are spaces, nothing else is left out."""
    return folded(text.translate(_SPACES))


def plain_line(text: str) -> str:
    """The same with its accents, for matches that count as exact."""
    return text.translate(_SPACES).lower()


@lru_cache(maxsize=50_000)
def words(text: str) -> tuple[str, ...]:
    """Words of a text, Chinese and Japanese one sign at a time, English genitives without their s."""
    found = _WORD.findall(folded(text).translate(_BREAKS))
    return tuple(word[:-2] if word[-2:] in ("'s", "’s") else word for word in found)


def _ascii(letter: str) -> str:
    if letter.isascii():
        return letter
    bare = "".join(c for c in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(c))
    return bare if bare.isascii() else _LETTERS.get(bare, letter)
