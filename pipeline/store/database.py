"""This process's way to PostgreSQL, opened at the first use (never at import: workers fork after it)."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from time import sleep
from typing import Any, TypeVar, cast

import psycopg
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from pipeline import settings
from pipeline.declare.errors import database_is_unable
from pipeline.store import engine as engines

Answer = TypeVar("Answer")


def engine() -> Engine:
    """The SQLAlchemy engine of this process; a forked child gets one of its own.

    >>> with engine().connect() as connection:
    ...     connection.execute(text("SELECT count(*) FROM pipeline.jobs")).scalar_one()
    0
    """
    config = settings.get()
    return _engine(os.getpid(), config.dsn, config.pooled)


@lru_cache(maxsize=4)
def _engine(pid: int, dsn: str, pooled: bool) -> Engine:  # noqa: ARG001  the pid is there to be part of the key
    return engines.engine(dsn, pooled=pooled)


def close_idle() -> None:
    """Close the connections of this process that nobody uses, if it has any."""
    if _engine.cache_info().currsize:
        engine().dispose()


def insist(work: Callable[[Connection], Answer]) -> Answer:
    """Run a fenced, repeatable statement until PostgreSQL answers: what depends on it must not go unrecorded."""
    delay = 0.1
    while True:
        try:
            with engine().begin() as connection:
                return work(connection)
        except SQLAlchemyError as error:
            # Ours are short: one that was cancelled met somebody's statement_timeout, or an operator.
            if not database_is_unable(error) and getattr(error.__cause__, "sqlstate", "") != "57014":
                raise
            sleep(delay)
            delay = min(delay * 2, 5.0)


def raw(connection: Connection) -> psycopg.Connection[Any]:
    """The driver's own connection below SQLAlchemy's."""
    return cast("psycopg.Connection[Any]", connection.connection.dbapi_connection)
