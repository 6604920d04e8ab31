"""The jobs of a test's own database."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg

# What runs, could run now or has expired; ends of children that nobody has counted, and children that nobody waits for.
# Not what waits for time, an event or children that have not ended, or is paused.
LEFT = """SELECT (SELECT count(*) FROM pipeline.jobs j LEFT JOIN pipeline.outbox o ON o.job_id = j.id
        LEFT JOIN pipeline.phases ph ON ph.id = o.phase_id LEFT JOIN pipeline.rate_limits l ON l.name = o.rate_limit
        WHERE j.completed_at IS NULL AND (j.status = 'running' OR (j.expires_at <= now() AND j.fence = 0)
            OR ((j.next_retry_at > now()) IS NOT TRUE
            AND (o.due_at > now() AND (o.due_at < 'infinity' OR o.waits_for IS NOT NULL)) IS NOT TRUE
            AND (ph.paused_until > now()) IS NOT TRUE AND (l.paused_until > now()) IS NOT TRUE)))
    + (SELECT count(*) FROM pipeline.batch_ends)
    + (SELECT count(*) FROM pipeline.batches b WHERE b.parent_job IS NOT NULL AND b.sealed AND b.completed_at IS NULL
        AND (b.answered_at IS NOT NULL OR b.remaining = 0))"""
ALL = "SELECT id FROM pipeline.jobs WHERE workflow = coalesce(%s, workflow) ORDER BY created_at, id"
OPEN = """SELECT workflow, phase, status, attempts, crashes, wait_reason, next_retry_at, error_message
    FROM pipeline.jobs WHERE completed_at IS NULL ORDER BY created_at LIMIT 20"""
JOB = """SELECT workflow, phase, status, body, coalesce(result, '{}'), crashes, error_message, next_retry_at,
    wait_reason, coalesce(tags, '{}') FROM pipeline.jobs WHERE id = %s"""
ATTEMPTS = "SELECT phase, outcome, attempt, fence, error FROM pipeline.attempts WHERE job_id = %s ORDER BY fence"


def left(connection: psycopg.Connection[Any]) -> int:
    """How many jobs run or could run now."""
    row = connection.execute(LEFT).fetchone()
    assert row is not None
    return int(row[0])


def all_jobs(connection: psycopg.Connection[Any], workflow: str | None) -> list[UUID]:
    """Oldest first."""
    return [row[0] for row in connection.execute(ALL, (workflow,)).fetchall()]


def open_jobs(connection: psycopg.Connection[Any]) -> list[str]:
    """For people: up to twenty jobs that have not ended."""
    return [" ".join(map(str, row)) for row in connection.execute(OPEN).fetchall()]


def job(connection: psycopg.Connection[Any], job_id: UUID) -> tuple[Any, ...] | None:
    """One job's row, as ``JOB`` names its columns."""
    return connection.execute(JOB, (job_id,)).fetchone()


def attempts(connection: psycopg.Connection[Any], job_id: UUID) -> list[tuple[Any, ...]]:
    """Its history, oldest first, as ``ATTEMPTS`` names its columns."""
    return connection.execute(ATTEMPTS, (job_id,)).fetchall()
