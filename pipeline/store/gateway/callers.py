"""The caller's own connection: a statement runs on it, in the caller's transaction, whatever library it comes from."""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, overload

import psycopg
from psycopg.rows import scalar_row

from pipeline.declare.errors import BadInput
from pipeline.store import database

Answer = TypeVar("Answer")


class DjangoConnection(Protocol):
    """``django.db.connection``, or one of ``django.db.connections``."""

    vendor: str
    in_atomic_block: bool

    def cursor(self) -> Any: ...


class DjangoProxy(Protocol):
    """``django.db.connection`` as type checkers see it: it passes on whatever it is asked for."""

    def __getattr__(self, item: str) -> Any: ...


class AsyncpgPoolConnection(Protocol):
    """A connection of asyncpg's pool as type checkers see it: its methods are made when it is imported."""

    def _detach(self) -> Any: ...


class AsyncpgConnection(Protocol):
    """A connection of asyncpg."""

    def is_in_transaction(self) -> bool: ...

    def fetch(self, query: str, *args: Any) -> Awaitable[Any]: ...


if TYPE_CHECKING:
    # Loaded by whoever has one; a worker has none and starts faster without.
    from typing import TypeAlias

    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

    SyncCaller: TypeAlias = (
        Session
        | scoped_session[Any]
        | Connection
        | psycopg.Connection[Any]
        | psycopg.Cursor[Any]
        | DjangoConnection
        | DjangoProxy
    )
    AsyncCaller: TypeAlias = (
        AsyncSession
        | async_scoped_session[Any]
        | AsyncConnection
        | psycopg.AsyncConnection[Any]
        | psycopg.AsyncCursor[Any]
        | AsyncpgConnection
        | AsyncpgPoolConnection
    )
    Caller: TypeAlias = SyncCaller | AsyncCaller | None


class Statement:
    """A statement with a ``%s`` for each value.

    Values travel as text and are cast by the statement: the drivers do not know the same types.
    """

    def __init__(self, text: str) -> None:
        numbers = count(1)
        self.text = text
        self.numbered = re.sub("%s", lambda _: f"${next(numbers)}::text", text)


class Call(NamedTuple, Generic[Answer]):
    """A statement with its values; ``read`` makes the answer from the first column of its rows."""

    statement: Statement
    values: tuple[str | None, ...]
    read: Callable[[list[Any]], Answer]


# Answers in place of PostgreSQL while an application's test runs without one (see pipeline.testing.in_memory).
stand_in: Callable[[Any, Call[Any]], list[Any]] | None = None


@overload
def run(caller: SyncCaller | None, call: Call[Answer]) -> Answer: ...


@overload
def run(caller: AsyncCaller, call: Call[Answer]) -> Coroutine[Any, Any, Answer]: ...


def run(caller: Caller, call: Call[Answer]) -> Answer | Coroutine[Any, Any, Answer]:
    """The answer, in the caller's transaction; to be awaited where the caller is. None: in a transaction of its own."""
    kind = _kind(caller)
    return _later(kind, caller, call) if kind.awaits else _now(kind, caller, call)


@overload
def known(caller: SyncCaller | None, answer: Answer) -> Answer: ...


@overload
def known(caller: AsyncCaller, answer: Answer) -> Coroutine[Any, Any, Answer]: ...


def known(caller: Caller, answer: Answer) -> Answer | Coroutine[Any, Any, Answer]:
    """An answer that takes no statement, in the form that the caller expects."""

    async def later() -> Answer:
        return answer

    return later() if _kind(caller).awaits else answer


def _now(kind: Kind, caller: Caller, call: Call[Answer]) -> Answer:
    if stand_in is not None:
        return call.read(stand_in(caller, call))
    with readable_errors():
        return call.read(kind.execute(caller, call))


async def _later(kind: Kind, caller: Caller, call: Call[Answer]) -> Answer:
    if stand_in is not None:
        return call.read(stand_in(caller, call))
    with readable_errors():
        return call.read(await kind.execute(caller, call))


@contextmanager
def readable_errors() -> Iterator[None]:
    """Turn the errors that our SQL functions raise on purpose into BadInput with their hint.

    >>> with readable_errors(), engine().begin() as connection:
    ...     connection.execute(text("SELECT pipeline.submit('no-such-workflow')"))
    Traceback (most recent call last):
    pipeline.declare.errors.BadInput: unknown workflow 'no-such-workflow': ...
    """
    try:
        yield
    except Exception as error:
        said = _refusal(error)
        if said is None:
            raise
        raise BadInput(said) from None


def _refusal(error: BaseException | None) -> str | None:
    """What our SQL function said, if it was one; SQLAlchemy and Django wrap the error of their driver."""
    while error is not None:
        if str(getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)).startswith("PL"):
            told = getattr(error, "diag", None)
            message = getattr(told, "message_primary", None) or getattr(error, "message", None)
            hint = getattr(told, "message_hint", None) or getattr(error, "hint", None)
            if message:
                return f"{message}: {hint}" if hint else str(message)
        error = error.__cause__
    return None


def _on_nobodys(_: None, call: Call[Any]) -> list[Any]:
    # One statement is a transaction by itself: without BEGIN and COMMIT around it.
    with database.engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        return _on_connection(connection, call)


def _on_connection(caller: Connection, call: Call[Any]) -> list[Any]:
    if caller.dialect.name != "postgresql":
        raise _refused(f"a connection to {caller.dialect.name}")
    statement = call.statement.numbered if caller.dialect.driver == "asyncpg" else call.statement.text
    # As the driver takes it: SQLAlchemy's text costs a third of a submit.
    return [row[0] for row in caller.exec_driver_sql(statement, call.values)]


def _on_session(caller: Session, call: Call[Any]) -> list[Any]:
    return _on_connection(caller.connection(), call)


async def _on_async_connection(caller: AsyncConnection, call: Call[Any]) -> list[Any]:
    return await caller.run_sync(_on_connection, call)


async def _on_async_session(caller: AsyncSession, call: Call[Any]) -> list[Any]:
    return await _on_async_connection(await caller.connection(), call)


def _on_psycopg(caller: psycopg.Connection[Any], call: Call[Any]) -> list[Any]:
    # Not the connection's own kind of cursor: that may have other rows or other placeholders.
    with psycopg.Cursor(caller, row_factory=scalar_row) as cursor:
        return cursor.execute(call.statement.text, call.values).fetchall()


def _on_cursor(caller: psycopg.Cursor[Any], call: Call[Any]) -> list[Any]:
    return _on_psycopg(caller.connection, call)


async def _on_async_psycopg(caller: psycopg.AsyncConnection[Any], call: Call[Any]) -> list[Any]:
    async with psycopg.AsyncCursor(caller, row_factory=scalar_row) as cursor:
        return await (await cursor.execute(call.statement.text, call.values)).fetchall()


async def _on_async_cursor(caller: psycopg.AsyncCursor[Any], call: Call[Any]) -> list[Any]:
    return await _on_async_psycopg(caller.connection, call)


async def _on_asyncpg(caller: AsyncpgConnection, call: Call[Any]) -> list[Any]:
    return [row[0] for row in await caller.fetch(call.statement.numbered, *call.values)]


def _on_django(caller: DjangoConnection, call: Call[Any]) -> list[Any]:
    vendor = getattr(caller, "vendor", "something else")
    if vendor != "postgresql":
        raise _refused(f"Django's connection to {vendor}")
    with caller.cursor() as cursor:
        cursor.execute(call.statement.text, call.values)
        return [row[0] for row in cursor.fetchall()]


class Kind(NamedTuple):
    """A class of callers, and how a statement is executed for one; if ``awaits``, that is to be awaited."""

    module: str
    name: str
    execute: Callable[[Any, Call[Any]], Any]
    awaits: bool = False


KINDS = (
    Kind("types", "NoneType", _on_nobodys),
    Kind("sqlalchemy", "Connection", _on_connection),
    Kind("sqlalchemy.orm", "Session", _on_session),
    Kind("sqlalchemy.orm", "scoped_session", _on_session),
    Kind("sqlalchemy.ext.asyncio", "AsyncConnection", _on_async_connection, awaits=True),
    Kind("sqlalchemy.ext.asyncio", "AsyncSession", _on_async_session, awaits=True),
    Kind("sqlalchemy.ext.asyncio", "async_scoped_session", _on_async_session, awaits=True),
    Kind("psycopg", "Connection", _on_psycopg),
    Kind("psycopg", "Cursor", _on_cursor),
    Kind("psycopg", "AsyncConnection", _on_async_psycopg, awaits=True),
    Kind("psycopg", "AsyncCursor", _on_async_cursor, awaits=True),
    Kind("asyncpg", "Connection", _on_asyncpg, awaits=True),
    Kind("asyncpg.pool", "PoolConnectionProxy", _on_asyncpg, awaits=True),
    Kind("django.db.backends.base.base", "BaseDatabaseWrapper", _on_django),
    Kind("django.utils.connection", "ConnectionProxy", _on_django),
)
ACCEPTED = (
    "an open session or connection of SQLAlchemy (Session, Connection, AsyncSession, AsyncConnection), a connection or "
    "cursor of psycopg (Connection, Cursor, AsyncConnection, AsyncCursor), a connection of asyncpg, "
    "django.db.connection; or None, for a transaction of its own"
)


_known: dict[type, Kind] = {}


def _kind(caller: object) -> Kind:
    found = type(caller)
    if found not in _known:
        _known[found] = _recognise(found)
    return _known[found]


def _recognise(found: type) -> Kind:
    """A library that is not loaded has no caller here, and is not loaded for the question."""
    for kind in KINDS:
        theirs = getattr(sys.modules.get(kind.module), kind.name, None)
        if theirs is not None and issubclass(found, theirs):
            return kind
    raise _refused(f"{found.__module__}.{found.__qualname__}")


def _refused(given: str) -> TypeError:
    return TypeError(f"jobs belong to a transaction of PostgreSQL, which {given} does not have. Accepted: {ACCEPTED}")
