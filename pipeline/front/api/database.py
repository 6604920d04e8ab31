"""The HTTP door's way to PostgreSQL: short transactions, each statement bounded in time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from pipeline.store import database

# Statements of the front are meant for an index. A plan made from old statistics must not read a whole table.
BOUNDS = """SET LOCAL statement_timeout = '5s'; SET LOCAL lock_timeout = '3s';
    SET LOCAL enable_seqscan = off; SET LOCAL jit = off"""


@contextmanager
def transaction() -> Iterator[Connection]:
    """Commits at the end of the block, rolls back when it raises. Nothing in it takes longer than five seconds."""
    with database.engine().begin() as connection:
        connection.exec_driver_sql(BOUNDS)
        yield connection
