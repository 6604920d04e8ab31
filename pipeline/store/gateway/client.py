"""What an application asks for: submit, cancel and replay jobs, open and seal batches."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy import Connection, text

# As the driver takes it: every submit of an application goes through here, and SQLAlchemy's text costs a third of it.
SUBMIT = "SELECT pipeline.submit_many(%s, %s::jsonb[], %s, %s::uuid, %s, %s::text[], %s::timestamptz, %s)"
CANCEL = text("SELECT pipeline.cancel(:id, :reason)")
REPLAY = text("SELECT pipeline.replay(:id)")
REPLAY_SEND = text("SELECT pipeline.replay(:id, :send)")
REPLAY_MANY = text("SELECT count(*) FROM pipeline.replay_many(CAST(:ids AS uuid[]), :rate)")
DISCARD_MANY = text("""SELECT count(*) FILTER (WHERE pipeline.discard(d.id, :reason))
    FROM (SELECT unnest(CAST(:ids AS uuid[])) AS id ORDER BY 1) d""")
OPEN_BATCH = text("SELECT pipeline.open_batch(:then, CAST(:body AS jsonb))")
SEAL_BATCH = text("SELECT pipeline.seal_batch(:batch)")
REQUEST_SEND = text("SELECT pipeline.request_send(:job, :queue)")

SendAnswer = Literal[
    "accepted",
    "already_queued",
    "already_running",
    "other_phase",
    "final",
    "not_due",
    "queue_full",
    "unknown_job",
]


def submit_many(
    connection: Connection,
    workflow: str,
    bodies: str,
    *,
    priority: int,
    keys: Sequence[str] | None,
    batch: UUID | None,
    due: datetime | None,
    traceparent: str | None,
    rate_limit: str | None,
) -> list[UUID]:
    """The new jobs, in the order of their bodies; ``bodies`` is PostgreSQL's text for an array of JSON."""
    chosen = None if keys is None else list(keys)
    values = (workflow, bodies, priority, batch, traceparent, chosen, due, rate_limit)
    return [row[0] for row in connection.exec_driver_sql(SUBMIT, values)]


def cancel(connection: Connection, job_id: UUID, reason: str) -> bool:
    """False if the job does not exist or has already finished."""
    return bool(connection.execute(CANCEL, {"id": job_id, "reason": reason}).scalar())


def replay(connection: Connection, job_id: UUID) -> bool:
    """False if the job is not failed."""
    return bool(connection.execute(REPLAY, {"id": job_id}).scalar())


def replay_send(connection: Connection, job_id: UUID, send: int | None) -> bool:
    """As ``replay``, for the message that the job failed with; False if a later one was sent."""
    return bool(connection.execute(REPLAY_SEND, {"id": job_id, "send": send}).scalar_one())


def replay_many(connection: Connection, job_ids: Sequence[UUID], per_second: float | None) -> int:
    """How many of them were failed and started again, in this order and at this rate."""
    return int(connection.execute(REPLAY_MANY, {"ids": job_ids, "rate": per_second}).scalar_one())


def discard_many(connection: Connection, job_ids: Sequence[UUID], reason: str) -> int:
    """How many of them were failed and are cancelled now, with the reason."""
    return int(connection.execute(DISCARD_MANY, {"ids": job_ids, "reason": reason}).scalar_one())


def open_batch(connection: Connection, then: str | None, body: str) -> UUID:
    """A new batch; ``body`` is the JSON of the job that is submitted when the batch is complete."""
    found: UUID = connection.execute(OPEN_BATCH, {"then": then, "body": body}).scalar_one()
    return found


def seal_batch(connection: Connection, batch: UUID) -> None:
    """No more jobs will join the batch."""
    connection.execute(SEAL_BATCH, {"batch": batch}).scalar()


def request_send(connection: Connection, job_id: UUID, queue: str) -> SendAnswer:
    """'accepted', or why not."""
    answer: SendAnswer = connection.execute(REQUEST_SEND, {"job": job_id, "queue": queue}).scalar_one()
    return answer
