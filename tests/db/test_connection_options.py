"""A host that dies without a word: neither side waits for minutes."""

from __future__ import annotations

import socket

import psycopg
import pytest
from sqlalchemy import create_engine

from pipeline import settings
from pipeline.declare.errors import BadInput
from pipeline.dev.services.ports import free_port
from pipeline.settings import sqlalchemy_url
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


def _several(database: Db) -> str:
    """A host that is down, and the one that is up."""
    info = database.info
    return f"postgresql://{info.user}:{info.password}@{info.host}:{free_port()},{info.host}:{info.port}/{info.dbname}"


def test_of_several_hosts_the_one_that_takes_writes_is_used_by_everybody(database: Db) -> None:
    """psycopg, SQLAlchemy's engine of ours, and one of the application's own from the same setting."""
    several = _several(database)
    with connect(several, "test") as connection:
        assert connection.info.dbname == database.info.dbname
    for pool in (engine(several), create_engine(sqlalchemy_url(several))):
        with pool.begin() as connection_of_pool:
            assert connection_of_pool.exec_driver_sql("SELECT current_database()").scalar_one() == database.info.dbname
        pool.dispose()


def test_an_error_of_several_hosts_does_not_show_the_password(database: Db) -> None:
    """Each host is named with its reason."""
    one = _several(database).replace(
        f"{database.info.host}:{database.info.port}", f"{database.info.host}:{free_port()}"
    )
    with pytest.raises(psycopg.OperationalError) as refused:
        connect(one, "test")
    assert database.info.password not in str(refused.value)


def test_people_are_told_all_hosts_and_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """One port may stand for all. An address that cannot be read is named, and not shown."""
    monkeypatch.setenv("RABBITMQ_URL", "amqp://localhost")
    config = settings.load(DATABASE_URL="postgresql://jobs:hidden@db1,db2:6000/shop")
    assert (config.database_place, config.session_dsn) == ("db1:5432,db2:6000/shop", config.dsn)
    assert settings.where("postgresql://jobs:hidden@db1,db2/shop") == "db1:5432,db2:5432/shop"
    with pytest.raises(BadInput) as wrong:
        settings.load(DATABASE_URL="postgresql://jobs:hidden@db1/shop?no_such_option=1")
    assert "DATABASE_URL" in str(wrong.value) and "hidden" not in str(wrong.value)
