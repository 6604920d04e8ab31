"""``actor.send(job_id)`` from an app: ask for a job to be sent, and hear why not."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text

from pipeline.declare.phase import PhaseSpec
from pipeline.observe.counters import count
from pipeline.store import database

REASONS = {
    "accepted": "the job is on its way to its queue",
    "already_queued": "a message for this job is in the queue or about to be",
    "already_running": "a worker holds this job",
    "other_phase": "the job is in another phase",
    "final": "the job has ended; use retry to run a failed one again",
    "not_due": "the job waits for its time (backoff, snoozed or throttled)",
    "queue_full": "the queue or the pool is full; the job waits in PostgreSQL and is sent when there is room",
    "unknown_job": "there is no such job",
}


@dataclass(frozen=True)
class Requested:
    """What became of the request. True in a condition when the job was accepted."""

    job_id: str
    reason: str

    def __bool__(self) -> bool:
        return self.reason == "accepted"

    def __str__(self) -> str:
        return f"job {self.job_id}: {self.reason} ({REASONS[self.reason]})"


def request_send(spec: PhaseSpec, job_id: UUID | str) -> Requested:
    """Ask for ``job_id`` to be sent to the phase."""
    try:
        known = UUID(str(job_id))
    except ValueError:
        return _refuse(str(job_id), "unknown_job")
    with database.engine().begin() as connection:
        reason = connection.execute(
            text("SELECT pipeline.request_send(:job, :queue)"), {"job": known, "queue": spec.queue}
        ).scalar_one()
    return Requested(str(known), reason) if reason == "accepted" else _refuse(str(known), reason)


def _refuse(job_id: str, reason: str) -> Requested:
    count(f"refused.{reason}")
    return Requested(job_id, reason)
