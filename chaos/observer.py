"""A look at PostgreSQL that outlives its restarts: the harness must not be what fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row

PATIENCE = 90.0


class Deadline(TimeoutError):
    """What was waited for did not happen in time."""


class Observer:
    """One connection, opened again when it breaks. Not for two threads."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection[DictRow] | None = None

    def rows(self, statement: str, *values: Any) -> list[DictRow]:
        """The answer, however long PostgreSQL is away; raises after a minute and a half."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return self._connected().execute(statement, values).fetchall()
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def one(self, statement: str, *values: Any) -> Any:
        """The first value of the first row, or None."""
        found = self.rows(statement, *values)
        return next(iter(found[0].values())) if found else None

    def run(self, statement: str) -> None:
        """A statement without an answer."""
        self._connected().execute(statement)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _connected(self) -> psycopg.Connection[DictRow]:
        if self._connection is None or self._connection.closed or self._connection.broken:
            self._connection = psycopg.connect(
                self._url, autocommit=True, row_factory=dict_row, application_name="chaos", connect_timeout=5
            )
        return self._connection


def until(condition: Callable[[], Any], seconds: float, what: str, pause: float = 0.05) -> Any:
    """Wait for an event; raises Deadline that names it."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise Deadline(f"waited {seconds:g} s for {what}")
        time.sleep(pause)
    return found
