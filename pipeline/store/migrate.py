"""Bring a database up to date: the engine's tables by Alembic, its functions and views as they stand in the SQL files.

All of it lies in the schema ``pipeline``. Nothing outside of that schema is created, altered or dropped, except once:
the tables of the first generation are moved there from ``public``.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from sqlalchemy import Connection, Engine, text

from pipeline.declare.errors import BadInput
from pipeline.store import own_functions, roles

SCHEMA = "pipeline"
HERE = Path(__file__).parent
# In this order, because views need what they name to exist already.
FOLDERS = (
    "outbox",
    "phases",
    "rate_limits",
    "liveness",
    "transitions",
    "hooks",
    "turns",
    "batches",
    "waits",
    "schedules",
    "audit",
    "bulk",
    "verify",
    "views",
)
# One migration at a time; a 64-bit key of our own (the first bytes of the SHA-256 of "pipeline migrate").
ONE_AT_A_TIME = text("SELECT pg_advisory_xact_lock(:key)")
KEY = int.from_bytes(hashlib.sha256(b"pipeline migrate").digest()[:8], signed=True)
FIRST_GENERATION = text("""SELECT to_regclass('public.pipeline_schema') IS NOT NULL
    AND to_regclass('public.outbox') IS NOT NULL AND to_regclass('public.alembic_version') IS NOT NULL
    AND to_regclass('pipeline.jobs') IS NULL""")
LAST_OF_FIRST = "0014"
DIGEST = text("SELECT digest FROM pipeline.installation")
VERSION = text("SELECT version_num FROM pipeline.versions")
LIVE_WORKERS = text("""SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
    AND application_name IN ('pipeline presence', 'pipeline committer')""")


def migrate(engine: Engine) -> bool:
    """Upgrade to the newest schema; safe while workers run and when several callers race. True if anything changed."""
    with engine.begin() as connection:
        alone(connection)
        before = _state(connection)
        connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        if connection.execute(FIRST_GENERATION).scalar_one():
            _bring_over(connection)
        upgrade(connection, HERE / "migrations", "versions", SCHEMA)
        _replace_functions(connection)
        return _state(connection) != before


def alone(connection: Connection) -> None:
    """Let one migration run at a time, until the end of the transaction."""
    connection.execute(ONE_AT_A_TIME, {"key": KEY})


def remove(engine: Engine) -> bool:
    """Take everything of ours away and nothing else. False if there was nothing.

    Without CASCADE: what an application built upon our objects stops it, and PostgreSQL says what that is.
    """
    with engine.begin() as connection:
        alone(connection)
        if not connection.execute(text("SELECT to_regclass('pipeline.installation')")).scalar():
            return False
        roles.remove(connection)
        own_functions.remove(connection)
        connection.exec_driver_sql((HERE / "migrations" / "remove.sql").read_text(encoding="utf-8"))
        return True


def upgrade(
    connection: Connection, folder: Path, version_table: str, version_schema: str, revision: str = "head"
) -> None:
    """Run Alembic's migrations in ``folder``; an application's own history can go the same way."""
    # Alembic announces its plugins when it is imported; a worker's log is no place for that.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(folder))
    config.attributes.update(connection=connection, version_table=version_table, version_schema=version_schema)
    command.upgrade(config, revision)


def missing(engine: Engine) -> str | None:
    """What a person must do before this database can be used, or None when it is ready."""
    with engine.connect() as connection:
        if _state(connection)[1] != _digest():
            return 'the database is not up to date: run "pipeline migrate"'
    return None


def is_new(engine: Engine) -> bool:
    """Whether the database has never been migrated, not even by the first generation."""
    with engine.connect() as connection:
        first_generation = connection.execute(FIRST_GENERATION).scalar_one()
        return not first_generation and _state(connection)[1] is None


def refuse_first_generation(engine: Engine) -> None:
    """A worker cannot work there, and bringing the database over is for a person: its old workers must be stopped."""
    with engine.connect() as connection:
        if connection.execute(FIRST_GENERATION).scalar_one():
            raise BadInput(
                'this database is of the first generation: stop its workers and run "pipeline migrate"; '
                "jobs in flight are kept"
            )


def sql_files() -> list[Path]:
    """The function and view definitions, in the order they are applied."""
    return [path for folder in FOLDERS for path in sorted((HERE / "functions" / folder).glob("*.sql"))]


def _bring_over(connection: Connection) -> None:
    """Move the tables of the first generation into the schema, jobs in flight included."""
    version = connection.execute(text("SELECT version_num FROM public.alembic_version")).scalar()
    if version != LAST_OF_FIRST:
        raise BadInput(
            f"this database is of version {version} of the first generation: upgrade it to {LAST_OF_FIRST} first, with "
            'the "pipeline migrate" of release 0.1, then run this again'
        )
    if connection.execute(LIVE_WORKERS).scalar_one():
        raise BadInput(
            "workers of the first generation are running: stop them all, then run this again. "
            "Jobs in flight are kept and continue with the new workers"
        )
    connection.exec_driver_sql(
        (HERE / "migrations" / "first_generation.sql").read_text(encoding="utf-8").replace("%", "%%")
    )
    connection.exec_driver_sql("CREATE TABLE pipeline.versions (version_num varchar(32) NOT NULL PRIMARY KEY)")
    connection.exec_driver_sql("ALTER TABLE pipeline.versions RENAME CONSTRAINT versions_pkey TO versions_pkc")
    connection.exec_driver_sql("INSERT INTO pipeline.versions VALUES ('0101')")


def _replace_functions(connection: Connection) -> None:
    digest, before = _digest(), _state(connection)[1]
    if before == digest:
        return
    # Functions name one another; their bodies are checked when they run.
    connection.exec_driver_sql("SET LOCAL check_function_bodies = off")
    definitions = [path.read_text(encoding="utf-8") for path in sql_files()]
    for definition in definitions:
        own_functions.create(connection, definition)
    own_functions.keep_only_what_was_just_created(connection, definitions)
    connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS pipeline.installation (digest text NOT NULL)")
    connection.exec_driver_sql("DELETE FROM pipeline.installation")
    connection.execute(text("INSERT INTO pipeline.installation VALUES (:digest)"), {"digest": digest})
    roles.renew(connection)


def _state(connection: Connection) -> tuple[str | None, str | None]:
    return _read(connection, "pipeline.versions", VERSION), _read(connection, "pipeline.installation", DIGEST)


def _read(connection: Connection, table: str, query: object) -> str | None:
    exists = connection.execute(text("SELECT to_regclass(:t)"), {"t": table}).scalar()
    found: str | None = connection.execute(query).scalar() if exists else None  # type: ignore[call-overload]
    return found


def _digest() -> str:
    digest = hashlib.sha256()
    for path in (*sql_files(), *roles.scripts()):
        digest.update(path.read_bytes())
    return digest.hexdigest()
