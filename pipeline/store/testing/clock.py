"""Time passes without waiting, for tests of applications. Nobody uses the database for anything else."""

from __future__ import annotations

from typing import Any

import psycopg

# A worker's own signs of life go on: it lives in real time.
TABLES = ["jobs", "outbox", "attempts", "batches", "phases", "rate_limits", "permits", "breakers", "keys", "signals"]
MOMENTS = """SELECT c.relname, string_agg(format('%%1$I = %%1$I - $1', a.attname), ', ')
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped
    WHERE a.atttypid = 'timestamptz'::regtype AND c.relnamespace = 'pipeline'::regnamespace AND c.relkind = 'r'
        AND c.relname = ANY (%s) GROUP BY 1"""
# How long until the first of those that wait for a time may run.
NEXT = """SELECT extract(epoch FROM min(next_retry_at) - now())::float8 FROM pipeline.jobs
    WHERE status IN ('pending', 'retryable') AND next_retry_at > now() AND next_retry_at < 'infinity'"""
WAKE = "SELECT pipeline.wake(), pipeline.announce_expiry(now())"


def let_pass(connection: psycopg.Connection[Any], seconds: float) -> None:
    """All that has happened or is planned moves into the past, and whoever waits for a time looks again."""
    with connection.transaction(), psycopg.RawCursor(connection) as cursor:
        for table, moved in connection.execute(MOMENTS, (TABLES,)).fetchall():
            statement = f"UPDATE pipeline.{table} SET {moved}".replace("$1", "make_interval(secs => $1)")  # noqa: S608  the schema's names
            cursor.execute(statement.encode(), (seconds,))
        connection.execute(WAKE)


def next_due(connection: psycopg.Connection[Any]) -> float | None:
    """In so many seconds the next job may run, if one waits for a time."""
    row = connection.execute(NEXT).fetchone()
    return None if row is None else row[0]
