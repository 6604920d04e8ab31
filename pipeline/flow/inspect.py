"""Reading about jobs and workers, for every door."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from pipeline.flow import database
from pipeline.rules.errors import BadInput

# What a workflow stores about a job beyond its row, by the workflow's name.
OUTPUTS: dict[str, Callable[[Connection, UUID], Any]] = {}

JOB = text("SELECT * FROM jobs WHERE id = :id")
TIMELINE = text("SELECT * FROM pipeline_timeline(:id)")
WORKERS = text("""SELECT w.id, w.host, w.pid, w.threads, w.queues, w.started_at, w.heartbeat_at, w.counters,
    extract(epoch FROM now() - w.heartbeat_at) AS age,
    CASE WHEN w.stopped_at IS NOT NULL THEN 'stopped' WHEN pipeline_alive(w.id) THEN 'alive'
         ELSE 'missing' END AS state,
    (SELECT count(*) FROM jobs j WHERE j.status = 'running' AND j.locked_by = w.id) AS running
    FROM workers w WHERE w.stopped_at IS NULL OR w.stopped_at > now() - interval '1 hour'
    ORDER BY w.no DESC LIMIT 200""")
FAILED = text("""SELECT id, workflow, phase, attempts, crashes, error_message, completed_at FROM jobs
    WHERE status = 'failed' AND workflow = coalesce(:workflow, workflow) ORDER BY id DESC LIMIT :limit""")


def describe(job_id: UUID) -> dict[str, Any]:
    """A job's row, its timeline, and what its workflow stored."""
    with database.engine().connect() as connection:
        row = connection.execute(JOB, {"id": job_id}).mappings().one_or_none()
        if row is None:
            raise BadInput(f"there is no job {job_id}; was it pruned, or is this another database?")
        timeline = [dict(part) for part in connection.execute(TIMELINE, {"id": job_id}).mappings()]
        output = OUTPUTS[row["workflow"]](connection, job_id) if row["workflow"] in OUTPUTS else None
    return {"job": dict(row), "timeline": timeline, "output": output}


def workers() -> list[dict[str, Any]]:
    """Living workers and those that went in the last hour."""
    with database.engine().connect() as connection:
        return [dict(row) for row in connection.execute(WORKERS).mappings()]


def failed(workflow: str | None, limit: int) -> list[dict[str, Any]]:
    """Failed jobs, newest first."""
    with database.engine().connect() as connection:
        return [dict(r) for r in connection.execute(FAILED, {"workflow": workflow, "limit": limit}).mappings()]


def discard(job_id: UUID, reason: str) -> bool:
    """Take a failed job off the list of dead letters; False if it is not failed."""
    with database.engine().begin() as connection:
        found = connection.execute(text("SELECT pipeline_discard(:id, :reason)"), {"id": job_id, "reason": reason})
        return bool(found.scalar_one())
