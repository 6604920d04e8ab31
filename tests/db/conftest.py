"""A database as the migrations leave it, put back after each test; no broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.datetime import TimestamptzLoader
from sqlalchemy import Engine, create_engine

from pipeline.dev.services import Servers
from pipeline.store import engine as engines
from pipeline.store.engine import Wire
from tests.databases import Databases, Lasting
from tests.db.steps import Db

# A statement that waits for ever fails its own test, and not the whole run.
PATIENCE = "-c statement_timeout=20s"
# Ours are found by their schema's name or not at all (test_names_in_full.py).
NO_PATH = "-c search_path=pg_catalog"
Connect = Callable[[], Db]
ENDS = {b"infinity": datetime.max.replace(tzinfo=UTC), b"-infinity": datetime.min.replace(tzinfo=UTC)}


class Moment(TimestamptzLoader):
    """Python has no infinity; what waits for a rate limit is due then. What a schedule has to do at once was due before."""

    def load(self, data: bytes | bytearray | memoryview) -> datetime:
        return ENDS.get(bytes(data)) or super().load(data)


@pytest.fixture(scope="session")
def lasting(databases: Databases) -> Lasting:
    return Lasting(databases)


@pytest.fixture
def connect(servers: Servers, lasting: Lasting) -> Iterator[Connect]:
    """Opens connections to the test's database, as many as it needs; each statement commits by itself."""
    with ExitStack() as stack:

        def open_one() -> Db:
            connection = stack.enter_context(
                psycopg.connect(
                    servers.postgres.url(lasting.name),
                    autocommit=True,
                    row_factory=dict_row,
                    options=f"{PATIENCE} {NO_PATH}",
                )
            )
            connection.adapters.register_loader("timestamptz", Moment)
            return connection

        yield open_one
    lasting.put_back()


@pytest.fixture
def database(connect: Connect) -> Db:
    """The test's first connection."""
    return connect()


@pytest.fixture
def wire(servers: Servers, lasting: Lasting, database: Db) -> Iterator[Wire]:
    """One as the engine's own threads have it."""
    with engines.connect(servers.postgres.url(lasting.name), "test") as connection:
        yield connection


@pytest.fixture
def engine(servers: Servers, lasting: Lasting, database: Db) -> Iterator[Engine]:
    """One of SQLAlchemy's, as commands and the API have it."""
    made = create_engine(servers.postgres.url(lasting.name).replace("postgresql://", "postgresql+psycopg://"))
    yield made
    made.dispose()
