"""pipeline migrate is a guest: all of it lies in the schema pipeline, and it drops what it created itself, nothing else."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import Engine, create_engine

from pipeline.dev.services import Servers
from pipeline.store import roles
from pipeline.store.migrate import HERE, migrate, remove, upgrade
from tests.databases import Databases

FOREIGN = """
    CREATE SCHEMA billing;
    CREATE TABLE public.jobs (id integer PRIMARY KEY);
    CREATE TABLE public.alembic_version (version_num text);
    INSERT INTO public.alembic_version VALUES ('0014');
    CREATE FUNCTION public.pipeline_report() RETURNS integer LANGUAGE sql AS 'SELECT 1';
    CREATE FUNCTION public.submit(p_invoice integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
    CREATE FUNCTION billing.claim(p_older interval) RETURNS integer LANGUAGE sql AS 'SELECT 1';
"""
IN_OUR_SCHEMA = "CREATE FUNCTION pipeline.cancel(p_order text) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
OLD_SIGNATURE = "CREATE FUNCTION pipeline.cancel(p_id integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
OBJECTS = """SELECT n.nspname || '.' || o.name FROM (
        SELECT c.relnamespace AS namespace, c.relname AS name FROM pg_class c
        UNION ALL SELECT p.pronamespace, p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')' FROM pg_proc p
        UNION ALL SELECT t.typnamespace, 'type ' || t.typname FROM pg_type t
    ) o JOIN pg_namespace n ON n.oid = o.namespace
    WHERE n.nspname NOT LIKE 'pg_%' AND n.nspname <> 'information_schema'"""
SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' AND nspname <> 'information_schema'"
PUBLIC_RIGHTS = """SELECT p.oid::regprocedure::text FROM pg_proc p
    WHERE p.pronamespace = 'pipeline'::regnamespace
      AND (p.proacl IS NULL OR EXISTS (SELECT 1 FROM aclexplode(p.proacl) a WHERE a.grantee = 0))"""


@pytest.fixture
def url(servers: Servers, databases: Databases) -> str:
    """A database that somebody else made and uses."""
    name = f"guest_{uuid4().hex[:12]}"
    servers.postgres.create_database(name)
    execute(servers.postgres.url(name), FOREIGN)
    return servers.postgres.url(name)


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    yield engine
    engine.dispose()


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def rows(url: str, query: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {row[0] for row in connection.execute(query.encode())}


def migrate_as_another_version(url: str, engine: Engine) -> None:
    execute(url, "UPDATE pipeline.installation SET digest = 'of another version'")
    assert migrate(engine)


def test_everything_it_makes_lies_in_its_own_schema(url: str, engine: Engine) -> None:
    """G10: whatever the application calls its own tables and functions, they stay as they are."""
    before = rows(url, OBJECTS)
    assert migrate(engine)
    made = rows(url, OBJECTS) - before
    assert before <= rows(url, OBJECTS)
    assert made and all(name.startswith("pipeline.") for name in made)
    assert not migrate(engine)


def test_it_takes_itself_away_and_nothing_else(url: str, engine: Engine) -> None:
    """--remove: the database is as it was before the first migration."""
    objects, schemas = rows(url, OBJECTS), rows(url, SCHEMAS)
    migrate(engine)
    assert remove(engine)
    assert (rows(url, OBJECTS), rows(url, SCHEMAS)) == (objects, schemas)
    assert not remove(engine)
    assert migrate(engine)


def test_a_strangers_function_in_its_schema_stays_and_so_does_the_schema(url: str, engine: Engine) -> None:
    """Only what is on record is ours."""
    migrate(engine)
    execute(url, IN_OUR_SCHEMA)
    remove(engine)
    assert "pipeline.cancel(p_order text)" in rows(url, OBJECTS)


def test_no_right_of_a_role_outlives_the_removal(url: str, engine: Engine) -> None:
    """PostgreSQL drops no role that has rights somewhere: the schema that stays for a stranger's sake is no reason."""
    migrate(engine)
    name = f"shop_{secrets.token_hex(4)}"
    execute(url, f"CREATE ROLE {name}")
    with engine.begin() as connection:
        for kind in ("client", "worker", "operator"):
            roles.grant(connection, kind, name)
    execute(url, IN_OUR_SCHEMA)
    remove(engine)
    execute(url, f"DROP ROLE {name}")


def test_what_an_application_built_upon_it_stops_the_removal(url: str, engine: Engine) -> None:
    """PostgreSQL says what depends on it; nothing is removed by half."""
    migrate(engine)
    execute(url, "CREATE VIEW billing.open_jobs AS SELECT id FROM pipeline.jobs")
    before = rows(url, OBJECTS)
    with pytest.raises(Exception, match=r"billing\.open_jobs|open_jobs"):
        remove(engine)
    assert rows(url, OBJECTS) == before


def test_a_signature_on_record_goes_when_the_files_no_longer_create_it(url: str, engine: Engine) -> None:
    """One that somebody else made under one of our names stays: it is not on record."""
    migrate(engine)
    execute(url, OLD_SIGNATURE + ";" + IN_OUR_SCHEMA)
    execute(url, "INSERT INTO pipeline.own_functions VALUES ('cancel(integer)')")
    before = rows(url, OBJECTS)
    migrate_as_another_version(url, engine)
    assert rows(url, OBJECTS) == before - {"pipeline.cancel(p_id integer)"}


def test_nothing_is_granted_to_everybody(url: str, engine: Engine) -> None:
    """PostgreSQL lets everybody call a new function; ours are for the roles that they are granted to."""
    migrate(engine)
    assert rows(url, PUBLIC_RIGHTS) == set()
    migrate_as_another_version(url, engine)
    assert rows(url, PUBLIC_RIGHTS) == set()


def test_a_running_job_keeps_its_processor_when_pools_become_places(engine: Engine) -> None:
    """A database that the version before made, with a worker's job in a pool of two."""
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA pipeline")
        upgrade(connection, HERE / "migrations", "versions", "pipeline", "0101")
        connection.exec_driver_sql(
            "INSERT INTO pipeline.phases (workflow, phase, position, queue, actor, pool, queue_limit, max_attempts, max_crashes,"
            " stale_after) VALUES ('old', 'act', 1, 'old.act', 'old.act', 2, 10, 3, 3, '5 minutes')"
        )
        job = connection.exec_driver_sql(
            "INSERT INTO pipeline.jobs (workflow, phase, body, trace_id, span_id, max_attempts, status, slot, locked_by, locked_at,"
            " heartbeat_at) VALUES ('old', 'act', '{}', 'a', 'b', 3, 'running', 2, 'w', now(), now()) RETURNING id"
        ).scalar_one()
    assert migrate(engine)
    with engine.begin() as connection:
        places = "SELECT number, job_id FROM pipeline.places ORDER BY number"
        assert connection.exec_driver_sql(places).all() == [(1, None), (2, job)]
        states = "SELECT processor, state FROM pipeline.processors ORDER BY 1"
        assert connection.exec_driver_sql(states).all() == [("act-processor-1", "idle"), ("act-processor-2", "busy")]


def test_the_keys_of_jobs_are_kept_when_they_get_a_table_of_their_own(engine: Engine) -> None:
    """A database that the version before made: the same key still gives the same job, and old outcomes stay."""
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA pipeline")
        upgrade(connection, HERE / "migrations", "versions", "pipeline", "0102")
        connection.exec_driver_sql(
            "INSERT INTO pipeline.phases (workflow, phase, position, queue, actor, queue_limit, max_attempts, max_crashes,"
            " stale_after) VALUES ('old', 'act', 1, 'old.act', 'old.act', 10, 3, 3, '5 minutes')"
        )
        job = connection.exec_driver_sql(
            "INSERT INTO pipeline.jobs (workflow, phase, body, trace_id, span_id, max_attempts, idempotency_key, status,"
            " completed_at) VALUES ('old', 'act', '{}', 'a', 'b', 3, 'k', 'succeeded', now()) RETURNING id"
        ).scalar_one()
        connection.exec_driver_sql(
            "INSERT INTO pipeline.attempts (job_id, fence, attempt, ready_at, finished_at, phase, outcome)"
            f" VALUES ('{job}', 1, 1, now(), now(), 'act', 'succeeded')"
        )
    assert migrate(engine)
    with engine.begin() as connection:
        submit = "SELECT pipeline.submit('old', p_key => %s)"
        assert connection.exec_driver_sql(submit, ("k",)).scalar_one() == job
        assert connection.exec_driver_sql(submit, ("l",)).scalar_one() != job
        assert connection.exec_driver_sql("SELECT outcome FROM pipeline.attempts").scalars().all() == ["succeeded"]


def test_a_function_that_returns_something_else_now_is_replaced(url: str, engine: Engine) -> None:
    """CREATE OR REPLACE cannot do that."""
    migrate(engine)
    execute(url, "DROP FUNCTION pipeline.open_before(bigint)")
    execute(
        url, "CREATE FUNCTION pipeline.open_before(p_horizon bigint) RETURNS text LANGUAGE sql AS $$ SELECT 'old' $$"
    )
    execute(url, "UPDATE pipeline.installation SET digest = 'another version'")
    migrate(engine)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT pipeline.open_before(3)").fetchone() == (0,)
