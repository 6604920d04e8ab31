"""The text that a PDF brings along: where each word stands, and whether it is what the page shows.

A hidden layer may be an older recognition full of errors, a stamp alone, or written with codes that mean nothing.
It is used only if pieces of it, read from the page's picture, say the same, and if no letters stand outside it.
"""

from __future__ import annotations

import ctypes
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from statistics import median
from typing import TYPE_CHECKING, Any

from actors.document.boost import tidy
from actors.document.ink import outside
from actors.document.layout import Line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Picture = NDArray[Any]

# What is compared: so many pieces, evenly spread over the page, of about so many letters each.
PIECES, PIECE_LETTERS = 4, 18
# The two may differ by what recognition gets wrong by itself.
SAME, PIECE_SAME = 0.93, 0.75
# Of the marks that look like letters this share may stand outside the layer: underlines, bullets, a logo.
OUTSIDE = 0.04
# A layer in lines of fewer letters is scattered, and one of so many letters is no page for people.
LINE_LETTERS, PAGE_LETTERS = 3, 50_000
# In word heights: letters nearer than this are one line, and a crop has this much around it.
ONE_LINE, AROUND = 1.0, 0.1
HYPHEN = "\x02"  # how the renderer gives the hyphen at the end of a line


@dataclass(frozen=True)
class Word:
    """A word of the layer and its place on the page's picture."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        """Of the box."""
        return self.bottom - self.top

    @property
    def corners(self) -> list[tuple[float, float]]:
        """From the top left clockwise."""
        return [
            (self.left, self.top),
            (self.right, self.top),
            (self.right, self.bottom),
            (self.left, self.bottom),
        ]

    def with_next(self, other: Word, between: str = "") -> Word:
        """Both as one."""
        return Word(
            self.text + between + other.text,
            min(self.left, other.left),
            min(self.top, other.top),
            max(self.right, other.right),
            max(self.bottom, other.bottom),
        )

    def is_followed_by(self, other: Word) -> bool:
        """In the same line, from left to right, without a wide gap."""
        height = max(self.height, other.height)
        level = abs(self.top + self.bottom - other.top - other.bottom) < height
        return level and -0.5 * height < other.left - self.right < ONE_LINE * height


def layer_of(page: Any, size: tuple[int, int]) -> list[list[Word]]:
    """The words of an open page, line by line, with their places on its picture of this size; none if too many."""
    text = page.get_textpage()
    try:
        return _lines(_letters(page, text, size)) if text.count_chars() <= PAGE_LETTERS else []
    finally:
        text.close()


def as_lines(layer: list[list[Word]], confidence: float) -> list[Line]:
    """For the reading order."""
    joined = []
    for words in layer:
        line = words[0]
        for word in words[1:]:
            line = line.with_next(word, " ")
        joined.append(Line(tidy(line.text), confidence, line.left, line.top, line.right, line.bottom))
    return [line for line in joined if line.text]


def agreement(layer: list[list[Word]], picture: Picture, read: Callable[[Picture], str]) -> float:
    """How far the layer is what the picture shows, 0 … 1; 0 if a piece of it is not, or it misses much of the page."""
    if not layer or median(_length(line) for line in layer) < LINE_LETTERS:
        return 0.0
    words = [word for line in layer for word in line]
    if outside(picture, (word.corners for word in words), median(word.height for word in words)) > OUTSIDE:
        return 0.0
    letters = same = 0.0
    for piece in _pieces(layer):
        wanted, got = _plain(piece.text), _plain(read(_cut(picture, piece)))
        likeness = SequenceMatcher(None, wanted, got, autojunk=False).ratio()
        if likeness < PIECE_SAME:
            return 0.0
        letters, same = letters + len(wanted), same + likeness * len(wanted)
    return same / letters if letters and same >= SAME * letters else 0.0


def _letters(page: Any, text: Any, size: tuple[int, int]) -> Iterator[Word | None]:
    """Letter by letter in the order of the file; None between words."""
    from pypdfium2 import raw  # type: ignore[import-untyped]  # ships no types

    box, x, y = raw.FS_RECTF(), ctypes.c_int(), ctypes.c_int()
    for n in range(text.count_chars()):
        letter = chr(raw.FPDFText_GetUnicode(text.raw, n)).replace(HYPHEN, "-")
        if letter.isspace() or not raw.FPDFText_GetLooseCharBox(text.raw, n, box):
            yield None
            continue
        corners = []
        for across, down in ((box.left, box.top), (box.right, box.bottom)):
            raw.FPDF_PageToDevice(page.raw, 0, 0, *size, 0, across, down, x, y)
            corners.append((x.value, y.value))
        (left, right), (top, bottom) = map(sorted, zip(*corners, strict=True))
        on_the_page = right > 0 and bottom > 0 and left < size[0] and top < size[1]
        yield Word(letter, left, top, right, bottom) if on_the_page else None


def _lines(letters: Iterator[Word | None]) -> list[list[Word]]:
    lines: list[list[Word]] = []
    within = False
    for letter in letters:
        if letter is None:
            within = False
        elif lines and lines[-1][-1].is_followed_by(letter):
            if within:
                lines[-1][-1] = lines[-1][-1].with_next(letter)
            else:
                lines[-1].append(letter)
            within = True
        else:
            lines.append([letter])
            within = True
    return lines


def _pieces(layer: list[list[Word]]) -> Iterator[Word]:
    """From lines evenly spread over the page, the longer ones if there are enough of them."""
    usual = median(_length(line) for line in layer)
    lines = [line for line in layer if _length(line) >= min(usual, PIECE_LETTERS)]
    for line in lines[:: max(1, -(-len(lines) // PIECES))]:
        piece = line[0]
        for word in line[1:]:
            if len(piece.text) >= PIECE_LETTERS:
                break
            piece = piece.with_next(word, " ")
        yield piece


def _length(line: list[Word]) -> int:
    return sum(len(word.text) for word in line)


def _plain(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def _cut(picture: Picture, piece: Word) -> Picture:
    around = AROUND * piece.height
    rows = slice(max(0, int(piece.top - around)), int(piece.bottom + around) + 1)
    return picture[rows, max(0, int(piece.left - around)) : int(piece.right + around) + 1]
