"""Putting records into a project, many at a time: PostgreSQL's COPY, ten thousand rows a go, all or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import orjson
import psycopg
from sqlalchemy import Connection, text

from actors.match.projects import NoSuchProject
from actors.match.upload import KEY_COLUMNS, Entry, check_entry, read_csv
from pipeline import BadInput

CHUNK = 10_000
LARGEST_DATA = 64 * 1024
_HOLD = text("select id from projects where id = :project for share")
_COPY = "copy dataset_entries (project_id, external_id, name, data) from stdin"
Placed = tuple[int, Entry]


def add_entries(connection: Connection, project: int, entries: Sequence[Mapping[str, Any]]) -> int:
    """Records as JSON objects: ``name``, perhaps ``external_id``, and whatever else is known. Returns their number."""
    return _add(connection, project, enumerate(map(_entry, entries, range(1, len(entries) + 1)), 1), "entry")


def load_csv(connection: Connection, project: int, pieces: Iterable[bytes]) -> int:
    """Records from a CSV file that comes in pieces; never more than a chunk of it is in memory."""
    return _add(connection, project, read_csv(pieces), "line")


def _add(connection: Connection, project: int, placed: Iterator[Placed], unit: str) -> int:
    if connection.execute(_HOLD, {"project": project}).scalar_one_or_none() is None:
        raise NoSuchProject(f"there is no project {project}")
    added = 0
    while copied := _copy(connection, project, islice(placed, CHUNK), unit):
        added += copied
    return added


def _copy(connection: Connection, project: int, chunk: Iterator[Placed], unit: str) -> int:
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    first = place = copied = 0
    try:
        with driver.cursor() as cursor, cursor.copy(_COPY) as copy:
            for copied, (place, entry) in enumerate(chunk, 1):  # noqa: B007  the last ones are wanted
                first = first or place
                copy.write_row((project, entry.external_id, entry.name, _encoded(entry, f"{unit} {place}")))
    except psycopg.errors.UniqueViolation as error:
        raise BadInput(_twice(error, f"{unit}s {first} to {place}")) from None
    return copied


def _encoded(entry: Entry, where: str) -> str:
    try:
        encoded = orjson.dumps(entry.data).decode()
    except TypeError as error:
        raise BadInput(f"{where} is not JSON: {error}") from None
    if len(encoded) > LARGEST_DATA or "\\u0000" in encoded:
        raise BadInput(f"{where}: its data is larger than {LARGEST_DATA} bytes, or has a NUL byte in it")
    return encoded


def _entry(given: Mapping[str, Any], place: int) -> Entry:
    data = dict(given)
    name = data.pop("name", None)
    key = next((data.pop(column) for column in KEY_COLUMNS if data.get(column) is not None), None)
    if not isinstance(name, str):
        raise BadInput(f"entry {place} has no name")
    return check_entry(Entry(name.strip(), None if key is None else str(key).strip() or None, data), f"entry {place}")


def _twice(error: psycopg.Error, where: str) -> str:
    detail = (error.diag.message_detail or "").split("=", 1)[-1][:200]
    return f"{where}: a key is there already: {detail}; keys are unique in a project, and nothing was added"
