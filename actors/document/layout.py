"""From recognised lines with their places on the page to paragraphs in reading order. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

# In usual line heights: between columns at least this much is white, and a line of running text is at least this long.
GUTTER, TEXT_WIDTH = 1.0, 8.0
# Running text fills its column to this share, and a column usually has this many lines.
FILLED, COLUMN_LINES = 0.6, 3
# A paragraph ends where the next line is further away than this many usual distances.
PARAGRAPH_GAP = 1.4
# So many rows at the edge of columns, set off and in one column only, are a headline.
HEADLINE_ROWS = 2


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

    @property
    def width(self) -> float:
        """Of the box."""
        return self.right - self.left


def paragraphs(lines: Sequence[Line]) -> list[list[str]]:
    """The page's paragraphs, column after column, each as its printed lines."""
    return [[_text(row) for row in rows] for rows in _ordered(sorted(lines, key=lambda line: line.middle))]


def _ordered(lines: list[Line]) -> list[list[list[Line]]]:
    """Paragraphs of rows: what is above the columns, then column by column, then what is below them."""
    if not lines:
        return []
    found = _columns(lines)
    if found is None:
        return _paragraphs(_rows(lines))
    start, end, columns = found
    inside = [paragraph for column in columns for paragraph in _ordered(column)]
    return _ordered(lines[:start]) + inside + _ordered(lines[end:])


def _columns(lines: list[Line]) -> tuple[int, int, list[list[Line]]] | None:
    """Which of the lines, from top to bottom, stand in columns of running text, if any do: the longest such run."""
    height = median(line.height for line in lines)
    best = None
    for start, end in sorted(_runs(lines, height), key=lambda run: run[0] - run[1]):
        if best is not None and end - start <= best[1] - best[0]:
            break
        first, last = _without_headlines(lines, start, end, height)
        columns = _split(lines[first:last], height)
        if _is_text_beside_text(columns, height) and (best is None or last - first > best[1] - best[0]):
            best = first, last, columns
    return best


def _runs(lines: list[Line], height: float) -> set[tuple[int, int]]:
    """Lines that follow one another without one that crosses a vertical, for each vertical just right of some line."""
    step = max(GUTTER * height / 2, 1e-6)
    places = {round(line.right / step) * step + step / 2 for line in lines}
    found = set()
    for place in places:
        edges = [-1, *(n for n, line in enumerate(lines) if line.left < place < line.right), len(lines)]
        found |= {(before + 1, after) for before, after in pairwise(edges) if after - before > 2 * COLUMN_LINES}
    return found


def _split(lines: list[Line], height: float) -> list[list[Line]]:
    """The lines dealt out to what lies between white stripes from top to bottom."""
    columns: list[list[Line]] = []
    reached = 0.0
    for line in sorted(lines, key=lambda line: line.left):
        if not columns or line.left - reached >= GUTTER * height:
            columns.append([])
            reached = line.right
        columns[-1].append(line)
        reached = max(reached, line.right)
    return [sorted(column, key=lambda line: line.middle) for column in columns]


def _is_text_beside_text(columns: list[list[Line]], height: float) -> bool:
    # cells of a table are short, or leave much of their column empty; they are read row by row
    if len(columns) < 2 or min(map(len, columns)) < 2 or median(map(len, columns)) < COLUMN_LINES:
        return False
    return all(_is_running_text(column, height) for column in columns) and _is_beside(columns)


def _is_beside(columns: list[list[Line]]) -> bool:
    """Most lines of the shortest column have a neighbour: the blocks of a letter stand one below the other."""
    shortest = min(columns, key=len)
    others = [line for column in columns if column is not shortest for line in column]
    level = [any(abs(a.middle - b.middle) < max(a.height, b.height) / 2 for b in others) for a in shortest]
    return sum(level) > len(level) / 2


def _is_running_text(column: list[Line], height: float) -> bool:
    usual = median(line.width for line in column)
    width = max(line.right for line in column) - min(line.left for line in column)
    return usual >= TEXT_WIDTH * height and usual >= FILLED * width


def _without_headlines(lines: list[Line], start: int, end: int, height: float) -> tuple[int, int]:
    """The run without a headline above its columns, or one below them that belongs to what follows."""
    columns = _split(lines[start:end], height)
    steps = [below.middle - above.middle for column in columns for above, below in pairwise(column)]
    usual = median(steps) if steps else 0.0
    rows = _rows(lines[start:end])
    above = _headline(rows, columns, usual)
    below = _headline(rows[::-1], columns, usual) if end < len(lines) else 0
    return start + above, end - below


def _headline(rows: list[list[Line]], columns: list[list[Line]], usual: float) -> int:
    """How many lines at this end of the rows are set off from the rest and stand in one column only."""
    for count in range(HEADLINE_ROWS, 0, -1):
        ended = [line for row in rows[:count] for line in row]
        if len(rows) <= count or sum(any(line in column for line in ended) for column in columns) != 1:
            continue
        if abs(rows[count][0].middle - rows[count - 1][0].middle) > PARAGRAPH_GAP * usual:
            return len(ended)
    return 0


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
