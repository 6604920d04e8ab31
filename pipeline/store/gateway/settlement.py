"""What an attempt does to its job, each step fenced; and what another worker may do to a job that runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, TextClause, text

from pipeline.declare.states import Outcome

if TYPE_CHECKING:
    from pipeline.declare.waits.next import Children

HOLD = text("SELECT pipeline.hold(:id, :fence)")
KEEP_STEP = text("SELECT verdict FROM pipeline.keep_steps(ARRAY[:id], ARRAY[:fence], ARRAY[:name], ARRAY[:value])")
KEPT_STEPS = text("SELECT name, value FROM pipeline.steps WHERE job_id = :id AND phase = :phase")
KEEP_LOG = text("SELECT pipeline.keep_log(:id, :fence, :traceback, :lines)")
PROGRESS = text("SELECT pipeline.progress(:id, :fence, :done, :total)")
ALIVE = text("SELECT pipeline.alive(:holder), extract(epoch FROM pipeline.primary_for())")
LAST_OUTCOME = text("SELECT outcome FROM pipeline.attempts WHERE job_id = :id ORDER BY fence DESC LIMIT 1")
SPAWN = "SELECT pipeline.spawn(%s, %s, %s, %s, %s::jsonb[], %s, %s)"
ENDS = text("SELECT id, status, error, result FROM pipeline.ends(:batch, CAST(:after AS uuid), :skip, :most)")
TAKE_OVER = text("SELECT pipeline.take_over(:worker, :id, :send, :holder, :fence, :delivery)")
TELL_MAINTENANCE = text("SELECT pg_notify('pipeline_maintenance', 'dead')")

# 'locked': another transaction holds the row, ask again. 'lost': the attempt no longer holds its job.
Verdict = Outcome | Literal["lost", "locked"]
Kept = Literal["won", "lost", "locked"]
TakeOver = Literal["claimed", "continued", "held", "changed", "poisoned", "locked"]


@dataclass(frozen=True)
class Retry:
    """An error: the next attempt begins after ``delay`` seconds, if the budget allows one."""

    error: str
    delay: float


@dataclass(frozen=True)
class Fail:
    """An error that no retry can fix."""

    error: str


@dataclass(frozen=True)
class Snooze:
    """A wait of ``delay`` seconds that costs nothing; ``asked``: the other side asked for it, which is bounded.

    ``step``: kept with it, as a step that need not be done again.
    """

    reason: str
    delay: float
    error: str | None
    asked: bool
    step: str | None = None


@dataclass(frozen=True)
class Release:
    """The worker shuts down; the job continues elsewhere, at no cost."""


@dataclass(frozen=True)
class Crash:
    """The attempt's own process died: one crash of the budget."""

    error: str


Transition = Retry | Fail | Snooze | Release | Crash

STATEMENTS: dict[type[Transition], TextClause] = {
    Retry: text("SELECT pipeline.retry(:id, :fence, :error, :delay)"),
    Fail: text("SELECT pipeline.fail(:id, :fence, :error)"),
    Snooze: text("SELECT pipeline.snooze(:id, :fence, 'snoozed', :reason, :delay, :error, :asked, :step)"),
    Release: text("SELECT pipeline.snooze(:id, :fence, 'released', 'shutdown', 0, NULL)"),
    Crash: text("SELECT pipeline.crash(:id, :fence, 'crashed', :error, true)"),
}


# Why an attempt failed is kept with these.
FAILED = ("retried", "exhausted", "failed", "crashed", "poisoned")


@dataclass(frozen=True)
class Log:
    """Why an attempt failed: its traceback, and what its phase logged last."""

    traceback: str | None
    lines: str | None


def settle(connection: Connection, job_id: UUID, fence: int, transition: Transition, log: Log | None = None) -> Verdict:
    """Make the transition, and keep the log with it. If the attempt had ended before, the verdict says how."""
    values = {"id": job_id, "fence": fence, **vars(transition)}
    verdict: Verdict = connection.execute(STATEMENTS[type(transition)], values).scalar_one()
    if verdict in FAILED and log is not None and (log.traceback or log.lines):
        connection.execute(KEEP_LOG, {"id": job_id, "fence": fence, **vars(log)})
    return verdict


def hold(connection: Connection, job_id: UUID, fence: int) -> bool | None:
    """True: the attempt holds its job until this transaction ends. False: it lost it. None: locked, ask again."""
    won: bool | None = connection.execute(HOLD, {"id": job_id, "fence": fence}).scalar_one()
    return won


def progress(connection: Connection, job_id: UUID, fence: int, done: int, total: int) -> bool | None:
    """As ``hold``, and noted if won."""
    values = {"id": job_id, "fence": fence, "done": done, "total": total}
    won: bool | None = connection.execute(PROGRESS, values).scalar_one()
    return won


def keep_step(connection: Connection, job_id: UUID, fence: int, name: str, value: str) -> Kept:
    """Keep what a step returned, while the attempt holds its job."""
    values = {"id": job_id, "fence": fence, "name": name, "value": value}
    verdict: Kept = connection.execute(KEEP_STEP, values).scalar_one()
    return verdict


def spawn(connection: Connection, parent: UUID, children: Children[Any], bodies: Sequence[str]) -> None:
    """Submit some of a job's children; their batch is sealed by the completion of the job's phase."""
    named = (children.policy, children.workflow, list(bodies), children.priority, children.traceparent)
    connection.exec_driver_sql(SPAWN, (parent, children.batch, *named))


def ends(connection: Connection, batch: UUID, after: UUID | None, skip: int, most: int) -> list[Mapping[str, Any]]:
    """How children ended, in the order in which they were submitted."""
    values = {"batch": batch, "after": after, "skip": skip, "most": most}
    return [dict(row) for row in connection.execute(ENDS, values).mappings()]


def kept_steps(connection: Connection, job_id: UUID, phase: str) -> dict[str, str]:
    """What the steps of this phase returned, as JSON, by their names."""
    rows = connection.execute(KEPT_STEPS, {"id": job_id, "phase": phase})
    return {row.name: row.value for row in rows}


def take_over(
    connection: Connection,
    job_id: UUID,
    *,
    worker_id: str,
    send: int | None,
    holder: str,
    fence: int,
    delivery: int,
) -> TakeOver:
    """Take a running job from ``holder``, unless that is alive."""
    values = {
        "worker": worker_id,
        "id": job_id,
        "send": send,
        "holder": holder,
        "fence": fence,
        "delivery": delivery,
    }
    verdict: TakeOver = connection.execute(TAKE_OVER, values).scalar_one()
    return verdict


class Alive(NamedTuple):
    """Whether a worker's lock is held, and for how many seconds this PostgreSQL has taken writes."""

    alive: bool
    up: float


def alive(connection: Connection, worker_id: str) -> Alive:
    """Look at the worker's lock."""
    held, up = connection.execute(ALIVE, {"holder": worker_id}).one()
    return Alive(held, float(up))


def last_outcome(connection: Connection, job_id: UUID) -> Outcome | None:
    """How the job's last attempt ended; None if none did, or there is no such job."""
    found: Outcome | None = connection.execute(LAST_OUTCOME, {"id": job_id}).scalar()
    return found


def tell_maintenance(connection: Connection) -> None:
    """A worker was seen to be gone: its other jobs are looked for at once."""
    connection.execute(TELL_MAINTENANCE)
