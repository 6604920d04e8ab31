"""Reading about jobs and workers, for every door."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from pipeline import settings
from pipeline.declare.errors import BadInput
from pipeline.declare.extension import extensions, load
from pipeline.store import database
from pipeline.store.inspect import waits

JOB = text("SELECT * FROM pipeline.jobs WHERE id = :id")
TIMELINE = text("""SELECT phase, attempt, part, started_at, ended_at, seconds, outcome, worker,
    left(error, 4000) AS error FROM pipeline.timeline(:id)""")
ATTEMPT = """a.phase, a.attempt, a.fence, a.outcome, pipeline.worker_name(a.worker, a.worker_no) AS worker,
    a.wait_reason, a.started_at, a.finished_at, left(a.error, 4000) AS error, l.job_id IS NOT NULL AS log
    FROM pipeline.attempts a LEFT JOIN pipeline.attempt_logs l ON l.job_id = a.job_id AND l.fence = a.fence"""
ATTEMPTS = text(f"SELECT {ATTEMPT} WHERE a.job_id = :id ORDER BY a.fence DESC LIMIT 200")
LOG = text(f"SELECT l.traceback, l.lines, {ATTEMPT} WHERE a.job_id = :id AND a.fence = :fence")
LOGS = text(f"SELECT l.traceback, l.lines, {ATTEMPT} WHERE l.job_id = :id ORDER BY a.fence")
STEPS = text("""SELECT phase, name, at, octet_length(value) AS size,
    CASE WHEN length(left(value, 1001)) > 1000 THEN left(value, 1000) || '…' ELSE value END AS preview
    FROM pipeline.steps WHERE job_id = :id ORDER BY at DESC, phase, name LIMIT 200""")
WAITS = text("SELECT waits_for, due_at FROM pipeline.job_status(ARRAY[CAST(:id AS uuid)])")
STATUS = text("SELECT status FROM pipeline.jobs WHERE id = :id")
SAME = text("SELECT body = CAST(:body AS jsonb) AND priority = :priority FROM pipeline.jobs WHERE id = :id")
ROW = """id, workflow, phase, status, priority, attempts, max_attempts, crashes, created_at, updated_at, completed_at,
    next_retry_at, locked_by, wait_reason, progress_done, progress_total, batch_id, rate_limit, trace_id,
    idempotency_key, coalesce(tags, '{}') AS tags, expires_at,
    left(error_message, 4000) AS error_message"""
JOBS = text(f"SELECT {ROW} FROM pipeline.jobs WHERE id = ANY (:ids) ORDER BY id DESC")  # noqa: S608
IN_BATCHES = f"""SELECT c.* FROM pipeline.batches b CROSS JOIN LATERAL (
        SELECT {ROW} FROM pipeline.jobs WHERE batch_id = b.id AND (CAST(:after AS uuid) IS NULL OR id > :after)
        AND (CAST(:status AS text) IS NULL OR status = :status) ORDER BY id LIMIT :limit) c
    WHERE b.parent_job = :id ORDER BY c.id LIMIT :limit"""  # noqa: S608  fixed columns
EACH_CHILD = text(IN_BATCHES)
EACH_OF_BATCH = text(IN_BATCHES.replace("b.parent_job = :id", "b.id = :id"))
BATCH_ROW = """SELECT id, total, remaining, failed, sealed, callback_workflow, callback_job, parent_job, created_at,
    completed_at FROM pipeline.batches"""
ONE_BATCH = text(f"{BATCH_ROW} WHERE id = :id")
BATCH = f"{BATCH_ROW} WHERE id < :before"
BATCHES = text(f"{BATCH} ORDER BY id DESC LIMIT :limit")
OPEN_BATCHES = text(f"{BATCH} AND completed_at IS NULL ORDER BY id DESC LIMIT :limit")
# Why a job that is failed is not replayed.
WITHOUT_ITS_KEY = "another job that has not ended has its key; wait until that has ended, or cancel it"
NEWEST = UUID(int=2**128 - 1)
PARTS = 1000
WORKERS = text("""SELECT w.id, w.host, w.pid, w.threads, w.queues, w.started_at, w.heartbeat_at, w.counters,
    extract(epoch FROM now() - w.heartbeat_at) AS age,
    pipeline.worker_state(w) AS state, w.not_consuming, w.stuck,
    w.version, w.memory, w.draining_at, w.stuck_jobs, coalesce(r.n, 0) AS running
    FROM pipeline.workers w LEFT JOIN (
        SELECT j.locked_by, count(*) AS n FROM pipeline.running_jobs j GROUP BY 1) r ON r.locked_by = w.id
    WHERE w.stopped_at IS NULL OR w.stopped_at > now() - interval '1 hour'
    ORDER BY w.no DESC LIMIT 200""")
OF_WORKER = text(f"""SELECT {ROW} FROM pipeline.running_jobs WHERE locked_by = :worker
    ORDER BY locked_at LIMIT :limit""")  # noqa: S608  fixed columns
FAILED = text("""SELECT id, workflow, phase, attempts, crashes, error_message, completed_at FROM pipeline.jobs
    WHERE failed_in IS NOT NULL AND workflow = coalesce(:workflow, workflow) ORDER BY id DESC LIMIT :limit""")


def describe(job_id: UUID) -> dict[str, Any]:
    """A job's row, its timeline, its attempts, its steps, what its workflow stored, and what it waits for."""
    with database.engine().connect() as connection:
        found = look(connection, job_id)
    if found is None:
        raise BadInput(f"there is no job {job_id}; was it pruned, or is this another database?")
    return found


def look(connection: Connection, job_id: UUID) -> dict[str, Any] | None:
    """As ``describe``, in the caller's transaction; None if there is no such job."""
    found = row(connection, job_id)
    if found is None:
        return None
    timeline = [dict(part) for part in connection.execute(TIMELINE, {"id": job_id}).mappings()][-PARTS:]
    attempts = [dict(part) for part in connection.execute(ATTEMPTS, {"id": job_id}).mappings()]
    steps = [dict(step) for step in connection.execute(STEPS, {"id": job_id}).mappings()]
    output = _output(found["workflow"])
    waits_for, due_at = connection.execute(WAITS, {"id": job_id}).one()
    failed = next((one["fence"] for one in attempts if one["log"]), None)
    return {
        "job": found,
        "waits_for": waits_for,
        "due_at": due_at,
        "timeline": timeline,
        "attempts": attempts,
        "why": None if failed is None else log(connection, job_id, failed),
        "steps": steps,
        "output": output(connection, job_id) if output else None,
        **waits.look(connection, job_id, 2 * settings.get().heartbeat_seconds + 1),
    }


def log(connection: Connection, job_id: UUID, fence: int) -> dict[str, Any] | None:
    """An attempt that has ended, with its traceback and its last lines if they were kept."""
    row = connection.execute(LOG, {"id": job_id, "fence": fence}).mappings().one_or_none()
    return None if row is None else dict(row)


def logs(connection: Connection, job_id: UUID) -> list[dict[str, Any]]:
    """The attempts of a job of which a traceback or lines were kept, oldest first."""
    return [dict(row) for row in connection.execute(LOGS, {"id": job_id}).mappings()]


def jobs(connection: Connection, ids: list[UUID]) -> list[dict[str, Any]]:
    """These jobs, newest first, as lists show them."""
    return [dict(row) for row in connection.execute(JOBS, {"ids": ids}).mappings()]


def row(connection: Connection, job_id: UUID) -> dict[str, Any] | None:
    """A job's row, or None if there is no such job."""
    found = connection.execute(JOB, {"id": job_id}).mappings().one_or_none()
    return None if found is None else dict(found)


def children(
    connection: Connection, job_id: UUID, *, status: str | None, after: UUID | None, limit: int
) -> list[dict[str, Any]]:
    """The children of a job after this one, in the order of their bodies, as ``jobs``."""
    values = {"id": job_id, "status": status, "after": after, "limit": limit}
    return [dict(row) for row in connection.execute(EACH_CHILD, values).mappings()]


def jobs_of_batch(
    connection: Connection, batch: UUID, *, status: str | None, after: UUID | None, limit: int
) -> list[dict[str, Any]]:
    """The jobs of a batch after this one, oldest first, as ``jobs``."""
    values = {"id": batch, "status": status, "after": after, "limit": limit}
    return [dict(row) for row in connection.execute(EACH_OF_BATCH, values).mappings()]


def batch(connection: Connection, number: UUID) -> dict[str, Any] | None:
    """A batch, or None if there is no such batch."""
    found = connection.execute(ONE_BATCH, {"id": number}).mappings().one_or_none()
    return None if found is None else dict(found)


def status(connection: Connection, job_id: UUID) -> str | None:
    """The job's state, or None if there is no such job."""
    found: str | None = connection.execute(STATUS, {"id": job_id}).scalar()
    return found


def is_same_wish(connection: Connection, job_id: UUID, body: bytes, priority: int) -> bool:
    """Whether the job was submitted with this body, which is JSON, and priority."""
    values = {"id": job_id, "body": body.decode(), "priority": priority}
    return bool(connection.execute(SAME, values).scalar())


def workers() -> list[dict[str, Any]]:
    """Living workers and those that went in the last hour."""
    with database.engine().connect() as connection:
        return worker_rows(connection)


def worker_rows(connection: Connection) -> list[dict[str, Any]]:
    """As ``workers``, in the caller's transaction."""
    return [dict(row) for row in connection.execute(WORKERS).mappings()]


def jobs_of_worker(connection: Connection, worker: str, limit: int = 200) -> list[dict[str, Any]]:
    """What a worker runs, the longest first."""
    return [dict(row) for row in connection.execute(OF_WORKER, {"worker": worker, "limit": limit}).mappings()]


def batches(
    connection: Connection, *, open_only: bool, before: UUID | None = None, limit: int = 50
) -> list[dict[str, Any]]:
    """Batches older than ``before``, newest first; ``open_only`` leaves out the complete ones."""
    statement = OPEN_BATCHES if open_only else BATCHES
    values = {"before": before or NEWEST, "limit": limit}
    return [dict(row) for row in connection.execute(statement, values).mappings()]


def failed(workflow: str | None, limit: int) -> list[dict[str, Any]]:
    """Failed jobs, newest first."""
    with database.engine().connect() as connection:
        return [dict(r) for r in connection.execute(FAILED, {"workflow": workflow, "limit": limit}).mappings()]


def _output(workflow: str) -> Callable[[Connection, UUID], object] | None:
    """The application's function that reads what a job of this workflow has stored."""
    for extension in extensions():
        if workflow in extension.outputs:
            found: Callable[[Connection, UUID], object] = load(extension.outputs[workflow])
            return found
    return None
