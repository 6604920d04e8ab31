"""The engine's SQL functions: who may call them, and which are ours to drop.

Ours are those on record that the SQL files no longer create. A function that somebody else put into our schema is not
on record, and is never touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from psycopg.errors import DependentObjectsStillExist, InvalidFunctionDefinition
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, ProgrammingError

CREATE = re.compile(r"^CREATE (?:OR REPLACE )?FUNCTION pipeline\.(\w+)", re.IGNORECASE | re.MULTILINE)
# Functions of our schema. Written in this transaction, or in a savepoint of it, means created by this code.
OURS = """(
    SELECT p.oid::regprocedure::text AS place, p.proname AS name, age(p.xmin) <= age(pg_current_xact_id()::xid) AS new,
           format('%I(%s)', p.proname, oidvectortypes(p.proargtypes)) AS signature
    FROM pg_proc p WHERE p.prokind = 'f' AND p.pronamespace = 'pipeline'::regnamespace) f"""
RECORD = text(f"INSERT INTO pipeline.own_functions SELECT signature FROM {OURS} WHERE new AND name = ANY (:created)")  # noqa: S608
RECORDED = text(f"SELECT place FROM {OURS} JOIN pipeline.own_functions USING (signature)")  # noqa: S608
NAMED = text(f"SELECT place FROM {OURS} JOIN pipeline.own_functions USING (signature) WHERE name = ANY (:names)")  # noqa: S608
# Made by the first migration: tables need it for the default of their ids.
NEW_ID = "pipeline.new_id()"
LEFT_BEHIND = text(f"SELECT place FROM {OURS} JOIN pipeline.own_functions USING (signature) WHERE NOT new")  # noqa: S608


def create(connection: Connection, definition: str) -> None:
    """Create or replace the functions of one file. What returns something else than before cannot be replaced."""
    statement = definition.replace("%", "%%")
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(statement)
    except ProgrammingError as error:
        if not isinstance(error.orig, InvalidFunctionDefinition):
            raise
        for place in connection.execute(NAMED, {"names": CREATE.findall(definition)}).scalars().all():
            _drop_unless_needed(connection, place)
        connection.exec_driver_sql(statement)


def _drop_unless_needed(connection: Connection, place: str) -> None:
    """A view or a trigger may need it: then it is one that can be replaced."""
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(f"DROP FUNCTION {place}")
    except DBAPIError as error:
        if not isinstance(error.orig, DependentObjectsStillExist):
            raise


def keep_only_what_was_just_created(connection: Connection, definitions: Iterable[str]) -> None:
    """Drop what an earlier version created and this one did not, and put this version's functions on record.

    PostgreSQL lets everybody call a new function. Ours are for the roles that they are granted to.
    """
    created = {name for definition in definitions for name in CREATE.findall(definition)}
    connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS pipeline.own_functions (signature text PRIMARY KEY)")
    for place in connection.execute(LEFT_BEHIND).scalars().all():
        connection.exec_driver_sql(f"DROP FUNCTION {place}")
    connection.exec_driver_sql("DELETE FROM pipeline.own_functions")
    # A migration's own functions have other names and stay with the tables that need them.
    connection.execute(RECORD, {"created": sorted(created)})
    for place in all_of_them(connection):
        connection.exec_driver_sql(f"REVOKE ALL ON FUNCTION {place} FROM PUBLIC")


def all_of_them(connection: Connection) -> list[str]:
    """Every function of ours, those of the migrations included."""
    return [*connection.execute(RECORDED).scalars(), NEW_ID]


def remove(connection: Connection) -> None:
    """Drop every function on record, and the views and triggers that use them."""
    connection.exec_driver_sql("DROP VIEW pipeline.processors, pipeline.counters, pipeline.running_jobs")
    connection.exec_driver_sql("DROP TRIGGER workers_keep_counters ON pipeline.workers")
    connection.exec_driver_sql("DROP TRIGGER jobs_step ON pipeline.jobs")
    for place in connection.execute(RECORDED).scalars().all():
        connection.exec_driver_sql(f"DROP FUNCTION {place}")
