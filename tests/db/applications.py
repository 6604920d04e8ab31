"""Applications that have a transaction open, each with the library it chose; a test sees them all alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker


@dataclass(frozen=True)
class Application:
    """``ask`` makes an answer of what a call returned: it awaits it, where the caller is async."""

    caller: Any
    ask: Callable[[Any], Any]
    commit: Callable[[], Any]
    rollback: Callable[[], Any]


Opened = Callable[[str], AbstractContextManager[Application]]


def _as_is(answer: Any) -> Any:
    return answer


def _with(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://")


def _sqlalchemy(make: Callable[[Any], Any]) -> Opened:
    """``make`` opens a session or a connection of an engine."""

    @contextmanager
    def opened(url: str) -> Iterator[Application]:
        engine = create_engine(_with(url, "psycopg"))
        caller = make(engine)
        yield Application(caller, _as_is, caller.commit, caller.rollback)
        caller.close()
        engine.dispose()

    return opened


def _async_sqlalchemy(driver: str, make: Callable[[Any], Any]) -> Opened:
    @contextmanager
    def opened(url: str) -> Iterator[Application]:
        with asyncio.Runner() as loop:
            engine = create_async_engine(_with(url, driver))
            caller = make(engine)
            if hasattr(caller, "start"):
                loop.run(caller.start())
            yield _awaited(loop, caller, caller.commit, caller.rollback)
            loop.run(caller.close())
            loop.run(engine.dispose())

    return opened


def _awaited(loop: asyncio.Runner, caller: Any, commit: Callable[[], Any], rollback: Callable[[], Any]) -> Application:
    return Application(caller, loop.run, lambda: loop.run(commit()), lambda: loop.run(rollback()))


def _psycopg(make: Callable[[Any], Any] = _as_is, **options: Any) -> Opened:
    """``make`` takes what is given as the caller from the connection."""

    @contextmanager
    def opened(url: str) -> Iterator[Application]:
        connection = psycopg.connect(url, **options)
        yield Application(make(connection), _as_is, connection.commit, connection.rollback)
        connection.close()

    return opened


def _async_psycopg(make: Callable[[Any], Any] = _as_is, **options: Any) -> Opened:
    @contextmanager
    def opened(url: str) -> Iterator[Application]:
        with asyncio.Runner() as loop:
            connection = loop.run(psycopg.AsyncConnection.connect(url, **options))
            yield _awaited(loop, make(connection), connection.commit, connection.rollback)
            loop.run(connection.close())

    return opened


@contextmanager
def _asyncpg(url: str) -> Iterator[Application]:
    with asyncio.Runner() as loop:
        connection = loop.run(asyncpg.connect(url))
        yield loop.run(_begun(loop, connection))
        loop.run(connection.close())


@contextmanager
def _asyncpg_with_its_own_types(url: str) -> Iterator[Application]:
    with asyncio.Runner() as loop:
        connection = loop.run(asyncpg.connect(url))
        for name in ("uuid", "jsonb"):
            kind = {"schema": "pg_catalog", "encoder": str, "decoder": str}
            loop.run(connection.set_type_codec(name, **kind))
        yield loop.run(_begun(loop, connection))
        loop.run(connection.close())


@contextmanager
def _asyncpg_pool(url: str) -> Iterator[Application]:
    with asyncio.Runner() as loop:

        async def made() -> Any:
            return await asyncpg.create_pool(url, min_size=1, max_size=1)

        pool = loop.run(made())
        connection = loop.run(_acquired(pool))
        yield loop.run(_begun(loop, connection))
        loop.run(pool.release(connection))
        loop.run(pool.close())


async def _acquired(pool: Any) -> Any:
    return await pool.acquire()


async def _begun(loop: asyncio.Runner, connection: Any) -> Application:
    transaction = connection.transaction()
    await transaction.start()
    return _awaited(loop, connection, transaction.commit, transaction.rollback)


def _django(make: Callable[[Any], Any]) -> Opened:
    """Inside ``transaction.atomic()``; ``make`` takes the caller from django.db."""

    @contextmanager
    def opened(url: str) -> Iterator[Application]:
        from django import db

        _configure_django(url)
        atomic = db.transaction.atomic()
        atomic.__enter__()
        yield Application(make(db), _as_is, lambda: _leave(atomic), lambda: _leave(atomic, rollback=True))
        db.connections["default"].close()

    return opened


def _configure_django(url: str) -> None:
    import django
    from django.conf import settings
    from django.db import connections

    if not settings.configured:
        engine = {"ENGINE": "django.db.backends.postgresql"}
        settings.configure(DATABASES={"default": engine}, USE_TZ=True, TIME_ZONE="UTC", LOGGING_CONFIG=None)
        django.setup()
    parts = conninfo_to_dict(url)
    found = {"NAME": parts["dbname"], "USER": parts["user"], "PASSWORD": parts.get("password")}
    connections["default"].close()
    connections["default"].settings_dict.update(found, HOST=parts["host"], PORT=parts["port"])


def _leave(atomic: Any, *, rollback: bool = False) -> None:
    from django.db import transaction

    if rollback:
        transaction.set_rollback(True)
    atomic.__exit__(None, None, None)


APPLICATIONS: dict[str, Opened] = {
    "Session": _sqlalchemy(Session),
    "scoped_session": _sqlalchemy(lambda engine: scoped_session(sessionmaker(engine))),
    "Connection": _sqlalchemy(lambda engine: engine.connect()),
    "AsyncSession": _async_sqlalchemy("psycopg", AsyncSession),
    "AsyncSession on asyncpg": _async_sqlalchemy("asyncpg", AsyncSession),
    "async_scoped_session": _async_sqlalchemy(
        "psycopg", lambda engine: async_scoped_session(async_sessionmaker(engine), lambda: 1)
    ),
    "AsyncConnection": _async_sqlalchemy("psycopg", lambda engine: engine.connect()),
    "AsyncConnection on asyncpg": _async_sqlalchemy("asyncpg", lambda engine: engine.connect()),
    "psycopg": _psycopg(),
    "psycopg with rows and placeholders of its own": _psycopg(row_factory=dict_row, cursor_factory=psycopg.RawCursor),
    "psycopg's cursor": _psycopg(lambda connection: connection.cursor()),
    "psycopg's cursor on the server": _psycopg(lambda connection: connection.cursor("named")),
    "async psycopg": _async_psycopg(),
    "async psycopg with rows of its own": _async_psycopg(row_factory=dict_row),
    "async psycopg's cursor": _async_psycopg(lambda connection: connection.cursor()),
    "asyncpg": _asyncpg,
    "asyncpg with types of its own": _asyncpg_with_its_own_types,
    "asyncpg's pool": _asyncpg_pool,
    "django.db.connection": _django(lambda db: db.connection),
    "django.db.connections": _django(lambda db: db.connections["default"]),
}
