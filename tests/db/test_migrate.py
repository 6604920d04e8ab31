"""pipeline migrate is a guest: it drops what it created itself, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import Engine, create_engine

from pipeline.dev.services import Servers
from pipeline.store.migrate import migrate
from tests.databases import Databases

FOREIGN = """
    CREATE SCHEMA billing;
    CREATE FUNCTION public.pipeline_report() RETURNS integer LANGUAGE sql AS 'SELECT 1';
    CREATE FUNCTION billing.pipeline.submit(p_invoice integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
    CREATE FUNCTION billing.pipeline.prune(p_older interval, p_most integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
"""
FOREIGN_NAMES = {
    "pipeline_report()",
    "billing.pipeline.submit(integer)",
    "billing.pipeline.prune(interval,integer)",
}
OLD_SIGNATURE = "CREATE FUNCTION pipeline.cancel(p_id integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
FUNCTIONS = """SELECT p.oid::regprocedure::text FROM pg_proc p
    WHERE p.pronamespace IN (SELECT oid FROM pg_namespace WHERE nspname IN ('public', 'billing'))"""


@pytest.fixture
def url(servers: Servers, databases: Databases) -> Iterator[str]:
    name = databases.new("migrate")
    yield servers.postgres.url(name)
    databases.give_back(name)


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    yield engine
    engine.dispose()


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def functions(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {row[0] for row in connection.execute(FUNCTIONS)}


def migrate_as_another_version(url: str, engine: Engine) -> None:
    execute(url, "UPDATE pipeline_schema SET digest = 'of another version'")
    assert migrate(engine)


def test_functions_of_others_survive_whatever_they_are_called(url: str, engine: Engine) -> None:
    """F17: in another schema, and in ours under a name that we never used."""
    execute(url, FOREIGN)
    migrate_as_another_version(url, engine)
    assert functions(url) >= FOREIGN_NAMES


def test_they_survive_too_where_an_earlier_version_kept_no_record(url: str, engine: Engine) -> None:
    """And an old signature and a retired name of ours go."""
    execute(url, FOREIGN + OLD_SIGNATURE)
    execute(url, "CREATE FUNCTION pipeline_check_body(p_body jsonb) RETURNS void LANGUAGE sql AS ''")
    execute(url, "DROP TABLE pipeline_functions")
    migrate_as_another_version(url, engine)
    found = functions(url)
    assert found >= FOREIGN_NAMES
    assert not found & {"pipeline.cancel(integer)", "pipeline_check_body(jsonb)"}
    assert {"pipeline.discard(uuid,text)", "pipeline.new_id()"} <= found


def test_a_signature_on_record_goes_when_the_files_no_longer_create_it(url: str, engine: Engine) -> None:
    """One that somebody else made under one of our names stays: it is not on record."""
    execute(url, OLD_SIGNATURE)
    execute(url, "INSERT INTO pipeline_functions VALUES ('pipeline.cancel(integer)')")
    execute(url, "CREATE FUNCTION pipeline.cancel(p_order text) RETURNS boolean LANGUAGE sql AS 'SELECT true'")
    before = functions(url)
    migrate_as_another_version(url, engine)
    assert functions(url) == before - {"pipeline.cancel(integer)"}


def test_a_first_migration_drops_nothing(servers: Servers, databases: Databases) -> None:
    """Nothing there can be ours, not even under one of our names."""
    name = "migrate_first"
    servers.postgres.create_database(name)
    url = servers.postgres.url(name)
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    execute(url, FOREIGN + OLD_SIGNATURE)
    assert migrate(engine)
    engine.dispose()
    assert functions(url) >= {*FOREIGN_NAMES, "pipeline.cancel(integer)", "pipeline.discard(uuid,text)"}
    databases.give_back(name)
