"""The connection that writes of several jobs share: it takes nothing that could disturb the next of them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NoReturn, Protocol, cast

import psycopg
from psycopg.rows import TupleRow
from psycopg.sql import Composable
from sqlalchemy import Connection, Engine
from sqlalchemy.pool import NullPool

from pipeline.store.engine import dial, engine_of

# What takes longer has a transaction of its own.
LIMITS = {"lock_timeout": "100ms", "statement_timeout": "250ms", "idle_in_transaction_session_timeout": "500ms"}
# What a write could leave behind for the one after it, apart from what it may not say at all.
STATE = """SELECT current_user, current_setting('search_path'), current_setting('TimeZone'),
    current_setting('lock_timeout'), current_setting('statement_timeout'),
    current_setting('session_replication_role'), current_setting('row_security')"""
SHAREABLE = re.compile(
    r"(\s|--[^\n]*\n|/\*.*?\*/|\()*(insert|update|delete|merge|select|with|values|savepoint|release|rollback\s+to)\b",
    re.IGNORECASE | re.DOTALL,
)
# Several statements in one, and functions whose effect is not the transaction's alone.
NOT_SHAREABLE = re.compile(r";\s*\S|set_config|pg_advisory_lock|pg_try_advisory_lock", re.IGNORECASE)


class Lease(Protocol):
    """Whose the connection is just now; ``given_up`` if that took too long."""

    given_up: bool


class NotShared(Exception):
    """The write needs a transaction of its own."""


@lru_cache(maxsize=1024)
def may_share(statement: str) -> bool:
    """Whether it changes rows and nothing else: no setting, no transaction, no table."""
    return SHAREABLE.match(statement) is not None and NOT_SHAREABLE.search(statement) is None


class SharedConnection(psycopg.Connection[TupleRow]):
    """A connection that lends itself to writes. Meanwhile it takes only what cannot disturb the next of them."""

    batch: Lease | None = None

    def guard(self, statement: object) -> None:
        """Raise unless the write that has the connection may say this."""
        if self.batch is None:
            return
        if isinstance(statement, Composable):
            statement = statement.as_string(self)
        if self.batch.given_up:
            raise NotShared("it took too long")
        if not isinstance(statement, str) or not may_share(statement):
            raise NotShared("a statement that needs a transaction of its own")

    def commit(self) -> None:
        self.guard("COMMIT")
        super().commit()

    def rollback(self) -> None:
        self.guard("ROLLBACK")
        super().rollback()


class SharedCursor(psycopg.Cursor[TupleRow]):
    """Whoever speaks to the server, SQLAlchemy or the driver itself, speaks through a cursor."""

    def execute(self, query: Any, *args: Any, **options: Any) -> SharedCursor:
        cast(SharedConnection, self.connection).guard(query)
        super().execute(query, *args, **options)
        return self

    def executemany(self, query: Any, *args: Any, **options: Any) -> None:
        cast(SharedConnection, self.connection).guard(query)
        super().executemany(query, *args, **options)

    def stream(self, query: Any, *args: Any, **options: Any) -> NoReturn:
        raise NotShared("a stream")

    def copy(self, *args: Any, **options: Any) -> NoReturn:
        raise NotShared("a COPY")


def wire_of(connection: Connection) -> SharedConnection:
    """The driver's own connection below SQLAlchemy's."""
    return cast(SharedConnection, connection.connection.dbapi_connection)


def shared_engine(dsn: str, *, pooled: bool = False) -> Engine:
    """Connections for batches of writes; each is opened when it is asked for. ``pooled``: see pipeline.store.engine."""
    return engine_of(
        lambda: dial(SharedConnection, dsn, "pipeline writer", LIMITS, pooled=pooled, cursor_factory=SharedCursor),
        LIMITS if pooled else {},
        poolclass=NullPool,
    )
