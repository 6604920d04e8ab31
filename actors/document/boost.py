"""Make recognised text readable by rules alone: whole words, whole paragraphs, clean spaces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# After these a hyphen belongs to the word ("êtes-vous", "celui-ci"), also at the end of a line.
KEEPS_HYPHEN = frozenset(
    {
        "je",
        "tu",
        "il",
        "elle",
        "on",
        "nous",
        "vous",
        "ils",
        "elles",
        "ce",
        "ci",
        "là",
        "moi",
        "toi",
        "le",
        "la",
        "les",
        "lui",
        "leur",
        "y",
        "en",
        "t",
        "même",
        "mêmes",
        "dessus",
        "dessous",
    }
)
_BROKEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
_FIRST_WORD = re.compile(r"[^\W\d_]+")
_SPACES = re.compile(r"\s+")
_NOT_STORABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_SENTENCE_ENDS = (".", "!", "?", "…", ":", "»", '"')


def tidy(text: str) -> str:
    """One line without characters that cannot be stored, with composed accents and single spaces."""
    return _SPACES.sub(" ", unicodedata.normalize("NFC", _NOT_STORABLE.sub("", text))).strip()


def boost_page(paragraphs: Sequence[Sequence[str]]) -> str:
    """Paragraphs of printed lines as running text, a blank line between them."""
    joined = (join_lines([tidy(line) for line in lines]) for lines in paragraphs)
    return "\n\n".join(paragraph for paragraph in joined if paragraph)


def join_lines(lines: Sequence[str]) -> str:
    """One paragraph; a word broken at the end of a line is whole again."""
    text = ""
    for line in filter(None, lines):
        text = _joined(text, line) if text else line
    return text


def boost_document(pages: Sequence[str]) -> str:
    """The pages as one text; a paragraph that runs on over the page's end is one paragraph."""
    text = ""
    for page in filter(None, (page.strip() for page in pages)):
        text = _joined(text, page) if _runs_on(text, page) else f"{text}\n\n{page}"
    return text.strip()


def _joined(text: str, line: str) -> str:
    first = _FIRST_WORD.match(line)
    if not _BROKEN.search(text) or first is None:
        return f"{text} {line}"
    if first[0] in KEEPS_HYPHEN or not first[0][0].islower():
        return text + line
    return text[:-1] + line


def _runs_on(text: str, page: str) -> bool:
    return text != "" and page[0].islower() and not text.endswith(_SENTENCE_ENDS)
