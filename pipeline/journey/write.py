"""The end of a phase with writes of its own: they and the job's transition are one commit, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from pipeline.declare.errors import StaleClaim, database_is_unable
from pipeline.journey.attempt import Attempt, Interrupted
from pipeline.store import database
from pipeline.store.group_statement import Completed

COMPLETE = text("""SELECT verdict, queue, actor, send, max_attempts, sent_at, fence, body, result,
        verdict IN ('done', 'handed_over') OR (verdict = 'continued' AND sent_at = now()) AS moved
    FROM pipeline.complete(:worker, ARRAY[CAST(:id AS uuid)], ARRAY[CAST(:fence AS bigint)],
                           ARRAY[CAST(:result AS jsonb)], NULL, ARRAY[CAST(:continuing AS text)])""")
HOLD = text("SELECT pipeline.hold(:id, :fence)")
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0


class Locked(Exception):
    """Another transaction holds the job's row."""


class _Before(Exception):
    """An earlier try had committed after all, and only its answer was lost: this one's writes are rolled back."""

    def __init__(self, completed: Completed) -> None:
        super().__init__()
        self.completed = completed


def complete_with_write(
    worker_no: int,
    attempt: Attempt,
    write: Callable[[Connection], None],
    result: str | None,
    continuing: str | None = None,
    *,
    tries: int | None = None,
) -> Completed:
    """The phase's own writes, the fenced transition, the history and the hand-over: one commit, or nothing.

    The write is repeated, and not the phase, while PostgreSQL cannot just now or another transaction holds the job's
    row. Between two tries nothing is kept locked, and the time is not the attempt's: each try is bounded by itself.
    After so many ``tries`` that found the row locked, Locked is raised.
    """
    values = {
        "worker": worker_no,
        "id": attempt.job_id,
        "fence": attempt.fence,
        "result": result,
        "continuing": continuing,
    }
    pause, locked = FIRST_PAUSE, 0
    while True:
        try:
            if locked:
                _ask_for_row(attempt)
            return _try(attempt, write, values)
        except _Before as earlier:
            return earlier.completed
        except Locked:
            locked += 1
        except SQLAlchemyError as error:
            if attempt.reason is not None:
                raise Interrupted from error
            if not database_is_unable(error):
                raise
        if tries is not None and locked >= tries:
            raise Locked
        attempt.detach()
        attempt.pause(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def _try(attempt: Attempt, write: Callable[[Connection], None], values: dict[str, Any]) -> Completed:
    attempt.begin_write()
    with database.engine().begin() as connection, attempt.writing(database.raw(connection)):
        write(connection)
        *row, moved = connection.execute(COMPLETE, values).one()
        completed = Completed(*row)
        if completed.verdict == "locked":
            raise Locked
        if completed.verdict == "lost":
            raise StaleClaim(f"job {attempt.job_id}: fence {attempt.fence} is no longer held; its result was discarded")
        if not moved:
            raise _Before(completed)
        return completed


def _ask_for_row(attempt: Attempt) -> None:
    """A write that is sure to find the row locked is not run in vain."""
    with database.engine().begin() as connection:
        if connection.execute(HOLD, {"id": attempt.job_id, "fence": attempt.fence}).scalar_one() is None:
            raise Locked
