"""Sets the blocks of a page in ``scans/``: which words stand where, in points."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

Row = dict[str, Any]
POINTS_PER_MM = 72 / 25.4
WIDTH, HEIGHT = 595.0, 842.0
MARGIN, GUTTER, BLOCK_GAP, PADDING = 20 * POINTS_PER_MM, 8 * POINTS_PER_MM, 8.0, 4.0
LEADING, HEADING = 1.25, 1.4
# The fonts that every PDF renderer brings along, regular and bold.
FONTS = {
    "serif": ("Times-Roman", "Times-Bold"),
    "sans": ("Helvetica", "Helvetica-Bold"),
    "mono": ("Courier", "Courier-Bold"),
}
ASCENT = 0.8
# Letters whose width the renderer tells only of fonts that are embedded.
MISSING = {"–": 0.556, "€": 0.556, "œ": 0.944}


@dataclass
class Drawing:
    """What stands on a page: ``words`` are text, place, size and boldness; ``rules`` are lines from point to point."""

    words: list[tuple[str, float, float, float, bool]] = field(default_factory=list)
    rules: list[tuple[float, float, float, float]] = field(default_factory=list)


class Setter:
    """Puts blocks on a drawing, in one font family."""

    def __init__(self, family: str, size: float) -> None:
        self.fonts, self.size, self.drawing = FONTS[family], size, Drawing()

    def blocks(self, blocks: list[Row], left: float, top: float, width: float) -> float:
        """Draw the blocks below ``top``; the height at which the next one would stand."""
        for block in blocks:
            top = self._block(block, left, top, width) - BLOCK_GAP
        return top

    def _block(self, block: Row, left: float, top: float, width: float) -> float:
        match block["kind"]:
            case "heading":
                return self._lines([block["text"]], left, top, width, self.size * HEADING, bold=True)
            case "paragraph":
                lines = list(self._filled(block["text"], width, bold=False))
                return self._lines(lines, left, top, width, self.size)
            case "lines":
                return self._lines(block["lines"], left, top, width, self.size, align=block.get("align", "left"))
            case "table":
                return self._table(block, left, top, width)
            case _:
                return self._columns(block["columns"], left, top, width)

    def _columns(self, columns: list[list[Row]], left: float, top: float, width: float) -> float:
        each = (width - GUTTER * (len(columns) - 1)) / len(columns)
        return min(self.blocks(c, left + n * (each + GUTTER), top, each) for n, c in enumerate(columns)) + BLOCK_GAP

    def _table(self, block: Row, left: float, top: float, width: float) -> float:
        edges, each = [top], width / len(block["rows"][0])
        for number, row in enumerate(block["rows"]):
            bottoms = []
            for n, cell in enumerate(row):
                lines = list(self._filled(cell, each - 2 * PADDING, bold=number == 0))
                place = (left + n * each + PADDING, edges[-1] - PADDING, each - 2 * PADDING, self.size)
                bottoms.append(self._lines(lines, *place, bold=number == 0, align=block["align"][n]))
            edges.append(min(bottoms) - PADDING)
        if block["ruled"]:
            self.drawing.rules += [(left, y, left + width, y) for y in edges]
            self.drawing.rules += [(left + n * each, top, left + n * each, edges[-1]) for n in range(len(row) + 1)]
        return edges[-1]

    def _lines(
        self,
        lines: list[str],
        left: float,
        top: float,
        width: float,
        size: float,
        *,
        bold: bool = False,
        align: str = "left",
    ) -> float:
        for line in lines:
            x = left if align == "left" else left + width - self._width(line, size, bold=bold)
            self.drawing.words.append((line, x, top - ASCENT * size, size, bold))
            top -= LEADING * size
        return top

    def _filled(self, text: str, width: float, *, bold: bool) -> Iterator[str]:
        line = ""
        for word in text.split(" "):
            if line and self._width(f"{line} {word}", self.size, bold=bold) > width:
                yield line
                line = word
            else:
                line = f"{line} {word}".strip()
        yield line

    def _width(self, text: str, size: float, *, bold: bool) -> float:
        return sum(letter_width(self.fonts[bold], letter) for letter in text) * size


@cache
def letter_width(font: str, letter: str) -> float:
    """In parts of the font size."""
    if letter in MISSING and font not in FONTS["mono"]:
        return MISSING[letter]
    from pypdfium2 import raw  # type: ignore[import-untyped]  # ships no types

    document = raw.FPDF_CreateNewDocument()
    loaded = raw.FPDFText_LoadStandardFont(document, font.encode())
    width = ctypes.c_float()
    raw.FPDFFont_GetGlyphWidth(loaded, letter.encode("cp1252", "replace")[0], 1000.0, width)
    raw.FPDFFont_Close(loaded)
    raw.FPDF_CloseDocument(document)
    return width.value / 1000
