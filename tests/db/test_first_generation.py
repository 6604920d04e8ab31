"""A database of the first generation, with jobs in flight, becomes one of the second."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import Engine, create_engine

from pipeline import BadInput
from pipeline.declare.registry import workflows
from pipeline.dev.services import Servers
from pipeline.store.extended import migrate_all
from pipeline.store.migrate import refuse_first_generation
from pipeline.store.register import register

DUMP = Path(__file__).with_name("first_generation.sql.gz")
SHAPE = """
    SELECT format('column %s.%s %s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
                  a.attgenerated, pg_get_expr(d.adbin, d.adrelid))
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'v')
         LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE c.relnamespace = 'pipeline'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT format('constraint %s.%s %s', r.conrelid::regclass, r.conname, pg_get_constraintdef(r.oid)) FROM pg_constraint r
    WHERE r.connamespace = 'pipeline'::regnamespace AND r.contype <> 'n' -- PostgreSQL 18's, and the columns say it
    UNION ALL
    SELECT 'index ' || i.indexdef FROM pg_indexes i WHERE i.schemaname = 'pipeline'
    UNION ALL
    SELECT 'table ' || c.relname || ' ' || coalesce(c.reloptions::text, '') FROM pg_class c
    WHERE c.relnamespace = 'pipeline'::regnamespace AND c.relkind = 'r'
    UNION ALL
    SELECT 'function ' || p.oid::regprocedure::text || ' ' || md5(p.prosrc) FROM pg_proc p
    WHERE p.pronamespace IN ('pipeline'::regnamespace, 'public'::regnamespace)
    UNION ALL
    SELECT 'trigger ' || t.tgname || ' ' || pg_get_triggerdef(t.oid) FROM pg_trigger t WHERE NOT t.tgisinternal
    UNION ALL
    SELECT 'public ' || c.relkind::text || ' ' || c.relname FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v') AND c.relname NOT IN ('ledger', 'rows_to_lock')
"""


@pytest.fixture
def old(servers: Servers) -> str:
    """As the last version of the first generation left it."""
    name = f"first_generation_{uuid4().hex[:12]}"
    servers.postgres.create_database(name)
    address = servers.postgres.url(name)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(gzip.decompress(DUMP.read_bytes()))
    return address


@pytest.fixture
def engine(old: str) -> Iterator[Engine]:
    engine = create_engine(old.replace("postgresql://", "postgresql+psycopg://"))
    yield engine
    engine.dispose()


def shape(address: str) -> set[str]:
    with psycopg.connect(address) as connection:
        return {row[0] for row in connection.execute(SHAPE.encode())}


def test_it_looks_as_if_it_had_always_been_one_of_the_second(
    old: str, engine: Engine, servers: Servers, template: str
) -> None:
    """Column for column, constraint for constraint, function for function."""
    assert migrate_all(engine)
    assert shape(old) == shape(servers.postgres.url(template))
    assert not migrate_all(engine)


def test_its_jobs_continue_where_they_were(old: str, engine: Engine) -> None:
    """One runs under a worker that is gone, one waits at no cost, one is scheduled, one waits for a rate limit."""
    migrate_all(engine)
    with engine.begin() as connection:
        register(connection, workflows().values(), 300.0)
    with psycopg.connect(old, autocommit=True) as connection:
        found = connection.execute(
            "SELECT j.body->>'n', j.status, coalesce(o.reason, '') FROM pipeline.jobs j LEFT JOIN pipeline.outbox o"
            " ON o.job_id = j.id WHERE j.body ? 'n' ORDER BY j.body->>'n'"
        ).fetchall()
        assert found == [
            ("1", "running", ""),
            ("2", "pending", "rate_limit"),
            ("3", "pending", "scheduled"),
            ("4", "pending", ""),
            ("5", "cancelled", ""),
            ("6", "pending", ""),
        ]
        assert connection.execute("SELECT outcome FROM pipeline.attempts ORDER BY outcome").fetchall() == [
            ("cancelled",),
            ("snoozed",),
        ]
        assert connection.execute("SELECT count(*) FROM pipeline.verify(false)").fetchone() == (0,)
        dead = connection.execute("SELECT array_agg(n) FROM pipeline.missing_workers() n").fetchone()
        assert dead is not None
        reclaimed = connection.execute("SELECT verdict FROM pipeline.reclaim(%s, '{}', '{}')", (dead[0],)).fetchall()
        assert reclaimed == [("crashed",)]
        sent = connection.execute("SELECT count(*) FROM pipeline.admit(1, 100)").fetchone()
        assert sent is not None and sent[0] >= 4


def test_its_application_works_as_before(old: str, engine: Engine) -> None:
    """Views, triggers and functions over the engine's tables are back."""
    migrate_all(engine)
    with psycopg.connect(old, autocommit=True) as connection:
        assert connection.execute("SELECT status FROM scrape_jobs").fetchall() == [("pending",)]
        connection.execute("UPDATE scrape_jobs SET status = 'cancelled'")
        connection.execute("UPDATE tasks SET status = 'CANCELLED'")
        assert connection.execute(
            "SELECT status FROM pipeline.jobs WHERE workflow IN ('scrape', 'match')"
        ).fetchall() == [("cancelled",), ("cancelled",)]


def test_an_older_version_is_told_what_to_do_first(old: str, engine: Engine) -> None:
    """Nothing is changed."""
    with psycopg.connect(old, autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0009'")
    with pytest.raises(BadInput, match=r"version 0009 of the first generation: upgrade it to 0014 first"):
        migrate_all(engine)


def test_a_worker_of_the_second_generation_refuses_it_until_it_is_brought_over(old: str, engine: Engine) -> None:
    """It would find no table of its own, and Dramatiq would let it run without us."""
    with pytest.raises(BadInput, match='stop its workers and run "pipeline migrate"'):
        refuse_first_generation(engine)
    migrate_all(engine)
    refuse_first_generation(engine)


def test_workers_of_the_first_generation_are_stopped_first(old: str, engine: Engine) -> None:
    """They would write to tables that are gone."""
    with (
        psycopg.connect(old, application_name="pipeline committer"),
        pytest.raises(BadInput, match="stop them all"),
    ):
        migrate_all(engine)
