"""The outbox: what may be sent, what was sent, and what must be sent again under a new number."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

if TYPE_CHECKING:
    from pipeline.store.engine import Wire

LISTEN = "LISTEN pipeline_relay"
ADMIT = """SELECT job_id, queue, actor, send, attempt, max_attempts, priority, body, trace_id, span_id, sent_at
    FROM pipeline.admit(%s, %s, %s)"""
NEXT_DUE = "SELECT seconds, waiting FROM pipeline.next_due()"
UNSEND = "SELECT pipeline.unsend(%s::uuid[], %s::bigint[], 'unconfirmed')"
STILL_SENT = "SELECT pipeline.still_sent(%s::uuid[], %s::bigint[])"
MARKED = text("""SELECT j.id, j.send FROM pipeline.outbox o JOIN pipeline.jobs j ON j.id = o.job_id
    WHERE o.job_id = ANY (CAST(:jobs AS uuid[])) AND o.sent_by = :worker AND j.status IN ('pending', 'retryable')""")
CONTINUED = text("""SELECT j.id, j.fence FROM unnest(CAST(:jobs AS uuid[]), CAST(:fences AS bigint[])) AS a(id, fence)
         JOIN pipeline.jobs j ON j.id = a.id AND j.fence = a.fence + 1 AND j.message_phase_id IS NOT NULL
         JOIN pipeline.workers w ON w.id = j.locked_by AND w.no = :worker""")


class Admitted(NamedTuple):
    """A job that was let through the gate: what its message is made of."""

    job_id: UUID
    queue: str
    actor: str
    send: int
    attempt: int
    max_attempts: int
    priority: int
    body: dict[str, Any]
    trace_id: str
    span_id: str
    sent_at: datetime


class NextDue(NamedTuple):
    """Seconds until something is due, or None; and whether jobs wait at a full queue."""

    seconds: float | None
    waiting: bool


class Marked(NamedTuple):
    """A job whose next message a worker had marked as sent."""

    job_id: UUID
    send: int


class Held(NamedTuple):
    """A job that a worker went on with, under its new fence."""

    job_id: UUID
    fence: int


def listen(connection: Wire) -> None:
    """Hear when there is something to send."""
    connection.execute(LISTEN)


def admit(connection: Wire, worker_no: int, most: int, resting: Sequence[str]) -> list[Admitted]:
    """Mark as sent what the gate lets through, at most so many and none of the queues that are ``resting``."""
    return [Admitted._make(row) for row in connection.execute(ADMIT, (worker_no, most, resting)).fetchall()]


def next_due(connection: Wire) -> NextDue:
    """When to look again."""
    row = connection.execute(NEXT_DUE).fetchone()
    return NextDue._make(row) if row else NextDue(None, False)


def unsend(connection: Wire, jobs: Sequence[UUID], sends: Sequence[int]) -> None:
    """What was not confirmed is sent again; what another transaction holds stays as it is (see ``still_sent``)."""
    connection.execute(UNSEND, ([str(job) for job in jobs], sends))


def still_sent(connection: Wire, jobs: Sequence[UUID], sends: Sequence[int]) -> set[UUID]:
    """Those that ``unsend`` could not have."""
    return {row[0] for row in connection.execute(STILL_SENT, ([str(job) for job in jobs], sends)).fetchall()}


def unsend_published(connection: Connection, jobs: Sequence[UUID], sends: Sequence[int]) -> None:
    """As ``unsend``, for a worker's own messages."""
    connection.exec_driver_sql(UNSEND, (jobs, sends))


def is_any_still_sent(connection: Connection, jobs: Sequence[UUID], sends: Sequence[int]) -> bool:
    """Whether ``unsend_published`` must be asked again."""
    return connection.exec_driver_sql(f"{STILL_SENT} LIMIT 1", (jobs, sends)).first() is not None


def marked_as_sent(connection: Connection, worker_no: int, jobs: Sequence[UUID]) -> list[Marked]:
    """Of these jobs those whose next message this worker had marked as sent, for itself to publish."""
    return [Marked._make(row) for row in connection.execute(MARKED, {"jobs": jobs, "worker": worker_no})]


def continued(connection: Connection, worker_no: int, jobs: Sequence[UUID], fences: Sequence[int]) -> list[Held]:
    """Of these attempts' jobs those that this worker went on with."""
    values = {"jobs": jobs, "fences": fences, "worker": worker_no}
    return [Held._make(row) for row in connection.execute(CONTINUED, values)]
