"""A host that dies without a word: neither side waits for minutes."""

from __future__ import annotations

import socket

import psycopg

from pipeline.store.engine import connect, engine
from tests.db.steps import Db

TCP_USER_TIMEOUT = 18


def _patience(connection: psycopg.Connection[object]) -> int:
    """Milliseconds for which the client waits for an acknowledgement of what it has sent."""
    with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as wire:
        return wire.getsockopt(socket.IPPROTO_TCP, TCP_USER_TIMEOUT)


def test_what_nobody_acknowledges_is_given_up_after_seconds(database: Db) -> None:
    """Keepalives alone do not help a connection that has sent something: the system tries for a quarter of an hour."""
    dsn = f"{database.info.dsn} password={database.info.password}"
    with connect(dsn, "test") as connection:
        assert 0 < _patience(connection) <= 20_000
        row = connection.execute("SELECT setting::int FROM pg_settings WHERE name = 'tcp_user_timeout'").fetchone()
        assert row and 0 < row[0] <= 20_000
    url = (
        f"postgresql+psycopg://{database.info.user}:{database.info.password}@{database.info.host}:{database.info.port}"
    )
    pooled = engine(f"{url}/{database.info.dbname}")
    with pooled.connect() as connection_of_pool:
        assert 0 < _patience(connection_of_pool.connection.dbapi_connection) <= 20_000  # type: ignore[arg-type]
    pooled.dispose()
