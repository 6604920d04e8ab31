"""The end of a phase with writes of its own: they and the job's transition are one commit, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from pipeline.declare.errors import StaleClaim, database_is_unable
from pipeline.journey.attempt import Attempt, Interrupted
from pipeline.store import database
from pipeline.store.gateway import settlement
from pipeline.store.group_commit import Answer, Completed, Locked, Lost, complete_one

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0


class StillLocked(Exception):
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
    After so many ``tries`` that found the row locked, StillLocked is raised.
    """
    complete = partial(
        complete_one,
        job_id=attempt.job_id,
        fence=attempt.fence,
        worker_no=worker_no,
        result=result,
        continuing=continuing,
    )
    pause, locked = FIRST_PAUSE, 0
    while True:
        try:
            if locked:
                _ask_for_row(attempt)
            return _try(attempt, write, complete)
        except _Before as earlier:
            return earlier.completed
        except StillLocked:
            locked += 1
        except SQLAlchemyError as error:
            if attempt.reason is not None:
                raise Interrupted from error
            if not database_is_unable(error):
                raise
        if tries is not None and locked >= tries:
            raise StillLocked
        attempt.detach()
        attempt.pause(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def _try(attempt: Attempt, write: Callable[[Connection], None], complete: Callable[[Connection], Answer]) -> Completed:
    attempt.begin_write()
    with database.engine().begin() as connection, attempt.writing(database.raw(connection)):
        write(connection)
        completed, moved = complete(connection)
        if isinstance(completed, Locked):
            raise StillLocked
        if isinstance(completed, Lost):
            raise StaleClaim(f"job {attempt.job_id}: fence {attempt.fence} is no longer held; its result was discarded")
        if not moved:
            raise _Before(completed)
        return completed


def _ask_for_row(attempt: Attempt) -> None:
    """A write that is sure to find the row locked is not run in vain."""
    with database.engine().begin() as connection:
        if settlement.hold(connection, attempt.job_id, attempt.fence) is None:
            raise StillLocked
