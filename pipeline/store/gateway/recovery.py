"""Jobs whose worker is dead or silent, jobs that cannot be delivered, and what does not add up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from pipeline.store.engine import Wire

MISSING = "SELECT pipeline.missing_workers()"
SILENT = "SELECT job_id, fence, heartbeat_at, stale FROM pipeline.silent_jobs(make_interval(secs => %s))"
RECLAIM = """SELECT job_id, queue, send, worker, verdict
    FROM pipeline.reclaim(%s::integer[], %s::uuid[], %s::bigint[])"""
DEAD_LETTER = """SELECT ph.actor, j.send, j.attempts, j.max_attempts, j.priority, j.body::text, j.trace_id, j.span_id,
        now()
    FROM pipeline.jobs j JOIN pipeline.phases ph ON ph.workflow = j.workflow AND ph.phase = j.phase
    WHERE j.id = %s AND j.status = 'failed'"""
UNDELIVERABLE = "SELECT pipeline.undeliverable(%s, %s, %s)"
RUNS_UNDER_A_DEAD_WORKER = """SELECT j.id, j.locked_by
    FROM pipeline.running_jobs j JOIN pipeline.workers w ON w.id = j.locked_by
    WHERE NOT pipeline.alive(w.id) ORDER BY j.id"""
VERIFY = "SELECT problem, subject, detail FROM pipeline.verify(%s)"


class SilentJob(NamedTuple):
    """A running job without a recent heartbeat; ``stale`` if it is older than its phase allows."""

    job_id: UUID
    fence: int
    heartbeat_at: datetime
    stale: bool


class Reclaimed(NamedTuple):
    """A running job that lost its holder."""

    job_id: UUID
    queue: str
    send: int
    worker: str
    verdict: Literal["crashed", "stale", "poisoned", "released"]


class DeadLetter(NamedTuple):
    """What the dead letter of a failed job is made of."""

    actor: str
    send: int
    attempts: int
    max_attempts: int
    priority: int
    body: str
    trace_id: str
    span_id: str
    now: datetime


class Orphan(NamedTuple):
    """A job that runs under a worker whose lock is free."""

    job_id: UUID
    worker: str


class Problem(NamedTuple):
    """One thing that does not add up in PostgreSQL itself."""

    problem: str
    subject: str
    detail: str


def missing_workers(connection: Wire) -> list[int]:
    """The numbers of workers that have not signed off and whose lock is free."""
    return [row[0] for row in connection.execute(MISSING).fetchall()]


def silent_jobs(connection: Wire, seconds: float) -> list[SilentJob]:
    """Running jobs without a heartbeat for so long."""
    return [SilentJob._make(row) for row in connection.execute(SILENT, (seconds,)).fetchall()]


def reclaim(connection: Wire, dead: Sequence[int], stale: Sequence[SilentJob]) -> list[Reclaimed]:
    """Take the jobs of ``dead`` workers, and those that are ``stale`` under this very fence, from their holders."""
    values = (dead, [job.job_id for job in stale], [job.fence for job in stale])
    return [Reclaimed._make(row) for row in connection.execute(RECLAIM, values).fetchall()]


def dead_letter(connection: Wire, job_id: UUID) -> DeadLetter | None:
    """None if the job is no longer failed."""
    row = connection.execute(DEAD_LETTER, (job_id,)).fetchone()
    return DeadLetter._make(row) if row else None


def undeliverable(connection: Wire, job_id: UUID, send: int, error: str) -> bool:
    """Fail a job that waits for this very message. False if it does not."""
    row = connection.execute(UNDELIVERABLE, (job_id, send, error)).fetchone()
    return bool(row and row[0])


def run_under_a_dead_worker(connection: Wire) -> list[Orphan]:
    """Jobs that nobody works on, though they run."""
    return [Orphan._make(row) for row in connection.execute(RUNS_UNDER_A_DEAD_WORKER)]


def verify(connection: Wire, *, repair: bool) -> list[Problem]:
    """What does not add up, repaired if asked for."""
    return [Problem._make(row) for row in connection.execute(VERIFY, (repair,)).fetchall()]
