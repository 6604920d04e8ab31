"""From recognised lines with their places on the page to paragraphs in reading order. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

# Text columns: a gap this wide (of the page's text), lines that fill their column, and enough of them.
GUTTER = 0.03
FILLED = 0.6
COLUMN_LINES = 3
# A paragraph ends where the next line is further away than this many usual distances.
PARAGRAPH_GAP = 1.4


@dataclass(frozen=True)
class Line:
    """A recognised line: its text, how sure the engine is (0 … 1), and its box, straightened."""

    text: str
    confidence: float
    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> float:
        """Half way down."""
        return (self.top + self.bottom) / 2

    @property
    def height(self) -> float:
        """Of the box."""
        return self.bottom - self.top


def paragraphs(lines: Sequence[Line]) -> list[list[str]]:
    """The page's paragraphs, column after column, each as its printed lines."""
    return [[_text(row) for row in rows] for block in _blocks(list(lines)) for rows in block]


def _blocks(lines: list[Line]) -> list[list[list[list[Line]]]]:
    """Blocks of paragraphs of rows: cut the page at its gutter, or else at its widest gap, as often as one helps."""
    if not lines:
        return []
    gutter = _gutter(lines)
    if gutter is not None:
        left = [line for line in lines if line.right <= gutter]
        return _blocks(left) + _blocks([line for line in lines if line.right > gutter])
    rows = _rows(lines)
    cut = _cut_that_frees_a_gutter(rows)
    if cut is not None:
        above, below = rows[:cut], rows[cut:]
        return _blocks([line for row in above for line in row]) + _blocks([line for row in below for line in row])
    return [_paragraphs(rows)]


def _gutter(lines: list[Line]) -> float | None:
    """Where a column ends, if the lines stand in two columns of running text."""
    width = max(line.right for line in lines) - min(line.left for line in lines)
    reached, candidates = float("-inf"), []
    for line in sorted(lines, key=lambda line: line.left):
        if reached > float("-inf") and line.left - reached >= GUTTER * width:
            candidates.append(reached)
        reached = max(reached, line.right)
    return next((place for place in candidates if _is_text_beside_text(lines, place)), None)


def _is_text_beside_text(lines: list[Line], gutter: float) -> bool:
    # cells of a table leave much of their column empty, and are read row by row
    sides = [line for line in lines if line.right <= gutter], [line for line in lines if line.right > gutter]
    return all(len(side) >= COLUMN_LINES and _fill(side) >= FILLED for side in sides)


def _fill(side: list[Line]) -> float:
    width = max(line.right for line in side) - min(line.left for line in side)
    return median(line.right - line.left for line in side) / width if width > 0 else 1.0


def _cut_that_frees_a_gutter(rows: list[list[Line]]) -> int | None:
    """A headline above columns hides their gutter: the row to cut before, so that one part has columns."""
    gaps = [(_top(rows[n]) - _bottom(rows[n - 1]), n) for n in range(1, len(rows))]
    for _, n in sorted(gaps, reverse=True)[:8]:
        for part in (rows[:n], rows[n:]):
            if _gutter([line for row in part for line in row]) is not None:
                return n
    return None


def _rows(lines: list[Line]) -> list[list[Line]]:
    """Lines side by side are one row, from left to right; rows from top to bottom."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.middle):
        if rows and abs(line.middle - rows[-1][0].middle) < 0.5 * min(line.height, rows[-1][0].height):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: line.left) for row in rows]


def _paragraphs(rows: list[list[Line]]) -> list[list[list[Line]]]:
    steps = [below[0].middle - above[0].middle for above, below in pairwise(rows)]
    usual = median(sorted(steps)[: max(1, (len(steps) + 1) // 2)]) if steps else 0.0
    groups = [[rows[0]]]
    for step, row in zip(steps, rows[1:], strict=True):
        if step > PARAGRAPH_GAP * usual:
            groups.append([])
        groups[-1].append(row)
    return groups


def _text(row: list[Line]) -> str:
    return " ".join(line.text.strip() for line in row if line.text.strip())


def _top(row: list[Line]) -> float:
    return min(line.top for line in row)


def _bottom(row: list[Line]) -> float:
    return max(line.bottom for line in row)
