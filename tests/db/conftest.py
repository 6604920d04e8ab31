"""A database of the test's own, cloned from the migrated template; no broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import dict_row

from pipeline.services import Servers
from tests.db.steps import Db

# A statement that waits for ever fails its own test, and not the whole run.
PATIENCE = "-c statement_timeout=20s"
Connect = Callable[[], Db]


@pytest.fixture
def connect(servers: Servers, template: str) -> Iterator[Connect]:
    """Opens connections to the test's database, as many as it needs; each statement commits by itself."""
    name = f"db_{uuid4().hex[:12]}"
    servers.postgres.create_database(name, template=template)
    with ExitStack() as stack:
        yield lambda: stack.enter_context(
            psycopg.connect(servers.postgres.url(name), autocommit=True, row_factory=dict_row, options=PATIENCE)
        )
    servers.postgres.drop_database(name)


@pytest.fixture
def database(connect: Connect) -> Db:
    """The test's first connection."""
    return connect()
