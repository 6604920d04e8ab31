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
ADMIT = """SELECT job_id, queue, actor, send, attempt, max_attempts, priority, body::text, trace_id, span_id, sent_at,
    horizon, open FROM pipeline.admit(%s, %s, %s, %s)"""
NEXT_DUE = "SELECT seconds, waiting FROM pipeline.next_due()"
OPEN_BEFORE = "SELECT pipeline.open_before(%s)"
UNSEND = "SELECT pipeline.unsend(%s::uuid[], %s::bigint[], 'unconfirmed')"
STILL_SENT = "SELECT pipeline.still_sent(%s::uuid[], %s::bigint[])"
GIVE_BACK = "SELECT pipeline.unsend(%s::uuid[], %s::bigint[], 'given_back')"
VOID = """SELECT j.id, a.send, j.send > a.send FROM unnest(%s::uuid[], %s::bigint[]) AS a(id, send)
    JOIN pipeline.jobs j ON j.id = a.id AND j.send >= a.send WHERE j.status IN ('pending', 'retryable')"""
CONTINUED = text("""SELECT j.id, j.fence FROM unnest(CAST(:jobs AS uuid[]), CAST(:fences AS bigint[])) AS a(id, fence)
         JOIN pipeline.jobs j ON j.id = a.id AND pipeline.follows(j.fence, a.fence) AND j.message_phase_id IS NOT NULL
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
    body: str
    trace_id: str
    span_id: str
    sent_at: datetime


class Horizon(NamedTuple):
    """Transactions below ``number`` may commit without waking the relay; so many of them are ``open``."""

    number: int
    open: int


class NextDue(NamedTuple):
    """Seconds until something is due, or None; and whether jobs wait at a full queue."""

    seconds: float | None
    waiting: bool


class CarriedJob(NamedTuple):
    """A job that a worker continued with, under its new fence."""

    job_id: UUID
    fence: int


def listen(connection: Wire) -> None:
    """Hear when there is something to send."""
    connection.execute(LISTEN)


def admit(
    connection: Wire, worker_no: int, most: int, resting: Sequence[str], *, sleeps: bool | None
) -> tuple[list[Admitted], Horizon | None]:
    """Mark as sent what the gate lets through, at most so many and none of the queues that are ``resting``.

    ``sleeps``: whoever commits something to send from now on wakes the relay, or need not; None: as before. A relay
    that falls asleep is told whom to wait for.
    """
    found = connection.execute(ADMIT, (worker_no, most, resting, sleeps), prepare=True).fetchall()
    if found and found[0][0] is None:
        return [], Horizon(*found[0][-2:])
    return [_admitted(row) for row in found], None


def _admitted(row: Sequence[Any]) -> Admitted:
    return Admitted._make(row[:-2])


def next_due(connection: Wire) -> NextDue:
    """When to look again."""
    row = connection.execute(NEXT_DUE, prepare=True).fetchone()
    assert row is not None
    return NextDue._make(row)


def open_before(connection: Wire, horizon: int) -> int:
    """How many transactions with a lower number are still open."""
    row = connection.execute(OPEN_BEFORE, (horizon,), prepare=True).fetchone()
    assert row is not None
    return int(row[0])


def unsend(connection: Wire, jobs: Sequence[UUID], sends: Sequence[int]) -> None:
    """What was not confirmed is sent again; what another transaction holds stays as it is (see ``still_sent``)."""
    connection.execute(UNSEND, ([str(job) for job in jobs], sends))


def still_sent(connection: Wire, jobs: Sequence[UUID], sends: Sequence[int]) -> set[UUID]:
    """Those that ``unsend`` could not have."""
    return {row[0] for row in connection.execute(STILL_SENT, ([str(job) for job in jobs], sends)).fetchall()}


def send_anew(connection: Connection, messages: Sequence[tuple[UUID, int]]) -> dict[tuple[UUID, int], bool]:
    """Send these jobs again under new numbers. For each that waits: whether its message, by job and send, is void now.

    One that is not has a row that another transaction holds.
    """
    values = ([job for job, _ in messages], [send for _, send in messages])
    connection.exec_driver_sql(GIVE_BACK, values)
    return {(job, send): void for job, send, void in connection.exec_driver_sql(VOID, values)}


def continued(connection: Connection, worker_no: int, jobs: Sequence[UUID], fences: Sequence[int]) -> list[CarriedJob]:
    """Of these attempts' jobs those that this worker continued with."""
    values = {"jobs": jobs, "fences": fences, "worker": worker_no}
    return [CarriedJob._make(row) for row in connection.execute(CONTINUED, values)]
