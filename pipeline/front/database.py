"""How the API and the commands reach PostgreSQL: short transactions, each statement bounded in time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pipeline.store import database
from pipeline.store.gateway import session

LOCKED = (
    "another transaction holds a row that this would change: try again when that transaction has ended "
    "(pg_stat_activity lists the open ones)"
)


@contextmanager
def transaction() -> Iterator[Connection]:
    """Commits at the end of the block, rolls back when it raises.

    >>> with transaction() as connection:
    ...     connection.execute(text("SELECT count(*) FROM pipeline.jobs")).scalar_one()
    0

    Nothing in it takes longer than five seconds. A row that another transaction holds is waited for three: see
    ``is_locked``.
    """
    with database.engine().begin() as connection:
        session.bound_the_front(connection)
        yield connection


def is_locked(error: DBAPIError) -> bool:
    """Whether another transaction held a row for too long: what was asked for may work as soon as it has ended."""
    return isinstance(error.orig, psycopg.errors.LockNotAvailable)
