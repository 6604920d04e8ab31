"""Records from a CSV file, however long it is: read piece by piece, every size bounded, errors with their line."""

from __future__ import annotations

import codecs
import csv
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pipeline import BadInput

MOST_COLUMNS = 100
LONGEST_ROW = 64 * 1024
NAME_COLUMNS = ("name", "label", "title")
KEY_COLUMNS = ("external_id", "id", "key")
LONGEST_KEY, LONGEST_NAME = 200, 500


@dataclass(frozen=True)
class Entry:
    """A record on its way into the database."""

    name: str
    external_id: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


def read_csv(pieces: Iterable[bytes]) -> Iterator[tuple[int, Entry]]:
    """Entries with the line each begins at. The first line names the columns; one of them is ``name``.

    UTF-8; commas, semicolons or tabs. Raises BadInput at the first line that cannot be taken.
    """
    lines = _Lines(pieces)
    heading = next(lines, None)
    if heading is None:
        raise BadInput("the file is empty; its first line names the columns, one of them name")
    delimiter = max(",;\t", key=heading.count)
    columns = _columns(next(csv.reader([heading], delimiter=delimiter)))
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        first = lines.count + 1
        lines.row_size = 0
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise BadInput(f"line {first} is no CSV: {error}") from None
        if any(cell.strip() for cell in row):
            yield first, _entry(first, columns, row)


def check_entry(entry: Entry, where: str) -> Entry:
    """The entry itself, if the database can take it."""
    if not entry.name:
        raise BadInput(f"{where} has no name")
    if len(entry.name) > LONGEST_NAME:
        raise BadInput(f"{where}: its name has {len(entry.name)} characters, the limit is {LONGEST_NAME}")
    if entry.external_id is not None and len(entry.external_id) > LONGEST_KEY:
        raise BadInput(f"{where}: its key has {len(entry.external_id)} characters, the limit is {LONGEST_KEY}")
    if any("\x00" in text for text in (entry.name, entry.external_id or "")):
        raise BadInput(f"{where} has a NUL byte in it; a text has none")
    return entry


class _Lines:
    """The lines of a file that comes in pieces. ``row_size`` counts since the reader last set it to zero."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._lines: deque[str] = deque()
        self._rest: str | None = ""
        self.count = 0
        self.row_size = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        while not self._lines:
            if self._rest is None:
                raise StopIteration
            self._bound(len(self._rest))
            self._more(self._rest)
        line = self._lines.popleft()
        self.count += 1
        self.row_size += len(line)
        self._bound(0)
        if "\x00" in line:
            raise BadInput(f"line {self.count} has a NUL byte in it; a text has none")
        return line

    def _bound(self, waiting: int) -> None:
        if self.row_size + waiting > LONGEST_ROW:
            raise BadInput(
                f"the row at line {max(self.count, 1)} is longer than {LONGEST_ROW} characters; is a quote missing?"
            )

    def _more(self, rest: str) -> None:
        piece = next(self._pieces, None)
        try:
            text = rest + self._decoder.decode(piece or b"", final=piece is None)
        except UnicodeDecodeError:
            raise BadInput(f"near line {self.count + 1}: the file is not UTF-8; convert it first") from None
        *whole, end = text.replace("\r\n", "\n").split("\n")
        self._lines.extend(line + "\n" for line in whole)
        self._rest = end if piece is not None else None
        if piece is None and end:
            self._lines.append(end)


def _columns(names: list[str]) -> list[str]:
    columns = [name.strip().lower() for name in names]
    if len(columns) > MOST_COLUMNS:
        raise BadInput(f"line 1 names {len(columns)} columns, the limit is {MOST_COLUMNS}")
    if not any(name in NAME_COLUMNS for name in columns):
        raise BadInput(f"line 1 names no column {' or '.join(NAME_COLUMNS)}; it has {', '.join(columns)[:200]}")
    twice = {name for name in columns if name and columns.count(name) > 1}
    if twice:
        raise BadInput(f"line 1 names a column twice: {', '.join(sorted(twice))[:200]}")
    return columns


def _entry(line: int, columns: list[str], row: list[str]) -> Entry:
    if len(row) > len(columns):
        raise BadInput(f"line {line} has {len(row)} fields, but line 1 names {len(columns)} columns")
    cells = {column: cell.strip() for column, cell in zip(columns, row, strict=False) if column and cell.strip()}
    name = next((cells.pop(column) for column in NAME_COLUMNS if column in cells), "")
    key = next((cells.pop(column) for column in KEY_COLUMNS if column in cells), None)
    return check_entry(Entry(name, key, dict(cells)), f"line {line}")
