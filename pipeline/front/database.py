"""The HTTP door's way to PostgreSQL: short transactions, each statement bounded in time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from pipeline.store import database
from pipeline.store.gateway import session


@contextmanager
def transaction() -> Iterator[Connection]:
    """Commits at the end of the block, rolls back when it raises. Nothing in it takes longer than five seconds."""
    with database.engine().begin() as connection:
        session.bound_the_front(connection)
        yield connection
