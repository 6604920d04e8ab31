"""Bring a database up to date: tables by Alembic, functions and views as they stand in the SQL files."""

from __future__ import annotations

import hashlib
import logging
from importlib import resources
from pathlib import Path

from sqlalchemy import Connection, Engine, text

from db import own_functions

# In this order, because views need what they name to exist already.
FOLDERS = ("outbox", "lanes", "presence", "transitions", "batches", "verify", "views")
LOCK = 7310


def migrate(engine: Engine) -> bool:
    """Upgrade to the newest schema; safe while workers run and when several callers race. True if anything changed."""
    # Alembic announces its plugins when it is imported; a worker's log is no place for that.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    from alembic import command
    from alembic.config import Config

    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key, 0)"), {"key": LOCK})
        before = _state(connection)
        config = Config()
        config.set_main_option("script_location", str(_folder("migrations")))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        _replace_functions(connection)
        return _state(connection) != before


def missing(engine: Engine) -> str | None:
    """What a person must do before this database can be used, or None when it is ready."""
    with engine.connect() as connection:
        if _state(connection)[1] != _digest():
            return 'the database is not up to date: run "pipeline migrate"'
    return None


def sql_files() -> list[Path]:
    """The function and view definitions, in the order they are applied. Workflows bring their own."""
    files = [path for folder in FOLDERS for path in sorted(_folder(folder).glob("*.sql"))]
    return files + sorted(Path(str(resources.files("actors"))).glob("*/views.sql"))


def _replace_functions(connection: Connection) -> None:
    digest, before = _digest(), _state(connection)[1]
    if before == digest:
        return
    # Functions name one another; their bodies are checked when they run.
    connection.exec_driver_sql("SET LOCAL check_function_bodies = off")
    definitions = [path.read_text(encoding="utf-8") for path in sql_files()]
    for definition in definitions:
        connection.exec_driver_sql(definition.replace("%", "%%"))
    own_functions.keep_only_what_was_just_created(connection, own_functions.names(definitions), first=before is None)
    connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS pipeline_schema (digest text NOT NULL)")
    connection.exec_driver_sql("DELETE FROM pipeline_schema")
    connection.execute(text("INSERT INTO pipeline_schema VALUES (:digest)"), {"digest": digest})


def _state(connection: Connection) -> tuple[str | None, str | None]:
    found = []
    for table, column in (("alembic_version", "version_num"), ("pipeline_schema", "digest")):
        exists = connection.execute(text("SELECT to_regclass(:t)"), {"t": table}).scalar()
        query = text(f"SELECT {column} FROM {table}")  # noqa: S608  both names stand above
        found.append(connection.execute(query).scalar() if exists else None)
    return found[0], found[1]


def _digest() -> str:
    digest = hashlib.sha256()
    for path in sql_files():
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _folder(name: str) -> Path:
    return Path(__file__).parent / name
