"""Connections to PostgreSQL: SQLAlchemy for the user's writes, plain psycopg where every microsecond counts."""

from __future__ import annotations

import psycopg
from psycopg.rows import TupleRow
from sqlalchemy import Engine, create_engine

# A connection that RabbitMQ's or the user's network ate must not hang a thread for minutes.
KEEPALIVE = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "connect_timeout": 10}


def engine(url: str, *, size: int = 5) -> Engine:
    """A pool of at most ``2 * size`` connections; broken ones are replaced when they are taken."""
    return create_engine(
        url, pool_size=size, max_overflow=size, pool_pre_ping=True,
        connect_args={**KEEPALIVE, "application_name": "pipeline"},
    )  # fmt: skip


def connect(dsn: str, name: str) -> psycopg.Connection[TupleRow]:
    """One connection outside of any pool, committing each statement by itself."""
    return psycopg.connect(dsn, autocommit=True, application_name=f"pipeline {name}", **KEEPALIVE)  # type: ignore[arg-type]
