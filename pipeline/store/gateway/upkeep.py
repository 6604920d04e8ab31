"""What maintenance does: prune, roll up, finish batches, report, move jobs of retired phases."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

if TYPE_CHECKING:
    from pipeline.store.engine import Wire

LISTEN = "LISTEN pipeline_maintenance"
ONE_AT_A_TIME = "SELECT pg_try_advisory_lock('pipeline.installation'::regclass::oid::integer, %s)"
PRUNE_AUDIT = "SELECT pipeline.prune_audit(make_interval(secs => %s), %s)"
PRUNE = "SELECT pipeline.prune(make_interval(secs => %s), %s, make_interval(secs => %s))"
ROLL_UP = "SELECT pipeline.roll_up()"
STEP_BULK_ACTIONS = "SELECT pipeline.step_bulk_actions()"
COUNT_ENDED = "SELECT pipeline.count_ended()"
FINISH_BATCHES = "SELECT pipeline.finish_batches(), pipeline.cancel_superfluous()"
EXPIRE = "SELECT pipeline.expire_due()"
# Counted up to ten thousand a phase: a report must not read a million waiting rows.
DEPTHS = """
    SELECT ph.queue,
           (SELECT count(*) FROM (SELECT 1 FROM pipeline.outbox o WHERE o.phase_id = ph.id
                AND o.sent_at IS NOT NULL
                AND (SELECT j.status FROM pipeline.jobs j WHERE j.id = o.job_id) <> 'running' LIMIT 10000) s) AS queued,
           (SELECT count(*) FROM (SELECT 1 FROM pipeline.outbox o WHERE o.phase_id = ph.id AND o.sent_at IS NULL
                                  AND o.due_at IS NULL LIMIT 10000) w) AS waiting
    FROM pipeline.phases ph ORDER BY ph.id"""
POOLS = "SELECT phase, state, count(*) FROM pipeline.processors WHERE state <> 'idle' GROUP BY phase, state"
# The last second is left for the next report: what ended then may not have committed yet.
WINDOW = "SELECT now() - interval '1 second', now() - interval '1 second' - make_interval(secs => %s)"
# By the index of ends, and no more than ten thousand attempts.
ENDED = """
    SELECT j.workflow || '.' || a.phase, count(*) FILTER (WHERE a.outcome = 'succeeded'),
           count(*) FILTER (WHERE a.outcome IN ('failed', 'exhausted', 'poisoned', 'undeliverable', 'expired')),
           count(*) FILTER (WHERE a.outcome = 'retried'), count(*) FILTER (WHERE a.outcome IN ('crashed', 'stale')),
           avg(extract(epoch FROM a.finished_at - a.started_at)) FILTER (WHERE a.outcome = 'succeeded')
    FROM (SELECT * FROM pipeline.attempts WHERE finished_at > %s AND finished_at <= %s
          ORDER BY finished_at DESC LIMIT 10000) a JOIN pipeline.jobs j ON j.id = a.job_id GROUP BY 1 ORDER BY 1"""
UNDECLARED = text("SELECT queue, jobs, running FROM pipeline.undeclared()")
MOVE = text("SELECT moved, running, locked, last FROM pipeline.move(:queue, :phase, :after, :most)")


class Depth(NamedTuple):
    """A queue: messages in the broker, and jobs that could be sent."""

    queue: str
    queued: int
    waiting: int


class Pool(NamedTuple):
    """Processors of a phase in one state."""

    phase: str
    state: str
    processors: int


class Window(NamedTuple):
    """The time a report is about; ``first`` is when it begins if there was none before."""

    until: datetime
    first: datetime


class Ended(NamedTuple):
    """Attempts of a phase that ended, and the mean seconds of those that succeeded."""

    queue: str
    succeeded: int
    failed: int
    retried: int
    crashed: int
    mean_seconds: Decimal | None


class Undeclared(NamedTuple):
    """A phase that nobody declares any more: its jobs, and how many of them run."""

    queue: str
    jobs: int
    running: int


class MovedBatch(NamedTuple):
    """What a move did, what it left because it runs or is locked, and the last job it saw; None: there are no more."""

    moved: int
    running: int
    locked: int
    last: UUID | None


def listen(connection: Wire) -> None:
    """Hear when a worker was seen to be gone, or a batch is to be counted."""
    connection.execute(LISTEN)


def take_sweep_lock(connection: Wire, number: int) -> bool:
    """False if the sweep of that number is under way elsewhere. Held for as long as the connection lives."""
    row = connection.execute(ONE_AT_A_TIME, (number,)).fetchone()
    return bool(row and row[0])


def prune_audit(connection: Wire, older: float, most: int) -> int:
    """How many entries of the audit, older than so many seconds, were deleted."""
    row = connection.execute(PRUNE_AUDIT, (older, most)).fetchone()
    assert row is not None
    return int(row[0])


def prune(connection: Wire, keep: float, batch: int, keep_failed: float | None) -> int:
    """Delete at most ``batch`` jobs that finished so many seconds ago; failed ones only if a time is given."""
    row = connection.execute(PRUNE, (keep, batch, keep_failed)).fetchone()
    return row[0] if row else 0


def roll_up(connection: Wire) -> None:
    """Note the last minute, once for all processes."""
    connection.execute(ROLL_UP)


def step_bulk_actions(connection: Wire) -> float:
    """Do the next part of what is done with many jobs. The seconds until the next look."""
    row = connection.execute(STEP_BULK_ACTIONS).fetchone()
    assert row is not None
    return float(row[0])


def count_ended(connection: Wire) -> None:
    """Add to the counters what was submitted and what ended since the last time, once for all processes."""
    connection.execute(COUNT_ENDED)


def finish_batches(connection: Wire) -> bool:
    """Count the ends of children, and cancel those that nobody waits for any more.

    True if something is held by another transaction, or left over, and must be asked for again.
    """
    row = connection.execute(FINISH_BATCHES).fetchone()
    return bool(row and any(row))


def expire(connection: Wire) -> float:
    """End the jobs that had to begin by now and did not. The seconds until the next look."""
    row = connection.execute(EXPIRE).fetchone()
    assert row is not None
    return float(row[0])


def depths(connection: Wire) -> list[Depth]:
    """Every queue."""
    return [Depth._make(row) for row in connection.execute(DEPTHS).fetchall()]


def pools(connection: Wire) -> list[Pool]:
    """Processors that are not idle."""
    return [Pool._make(row) for row in connection.execute(POOLS).fetchall()]


def window(connection: Wire, seconds: float) -> Window:
    """Until a second ago, and from so many seconds before that."""
    row = connection.execute(WINDOW, (seconds,)).fetchone()
    assert row is not None
    return Window._make(row)


def ended(connection: Wire, since: datetime, until: datetime) -> list[Ended]:
    """Attempts that ended in that time, by phase."""
    return [Ended._make(row) for row in connection.execute(ENDED, (since, until)).fetchall()]


def undeclared(connection: Connection) -> list[Undeclared]:
    """Phases that nobody declares any more and that still have jobs."""
    return [Undeclared._make(row) for row in connection.execute(UNDECLARED)]


def move(connection: Connection, queue: str, phase: str, *, after: UUID | None, most: int) -> MovedBatch:
    """Move waiting jobs of the retired phase ``queue`` to ``phase`` of the same workflow, from ``after`` on."""
    values = {"queue": queue, "phase": phase, "after": after, "most": most}
    return MovedBatch._make(connection.execute(MOVE, values).one())
