"""The end of a phase with writes of its own: they and the job's transition are one commit, or nothing."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from pipeline.declare.errors import StaleClaim, database_is_unable
from pipeline.declare.job import Done, Write
from pipeline.journey.attempt import Attempt, finished
from pipeline.journey.checkpoint import Interrupted
from pipeline.journey.settle import FIRST_PAUSE, LONGEST_PAUSE, TRIES, settle_for_good
from pipeline.observe import failpoints
from pipeline.store import database
from pipeline.store.gateway import settlement
from pipeline.store.group_commit import Answer, Completed, Completion, Locked, Lost, complete_all
from pipeline.store.shared_writes import SharedWrite

if TYPE_CHECKING:
    from pipeline.declare.waits.next import Children
    from pipeline.worker.process import WorkerProcess

# So many children in a statement, and in a transaction that other jobs share.
CHUNK, SHARED_CHILDREN = 5000, 100


class StillLocked(Exception):
    """Another transaction holds the job's row."""


class _Before(Exception):
    """An earlier try had committed after all, and only its answer was lost: this one's writes are rolled back."""

    def __init__(self, completed: Completed) -> None:
        super().__init__()
        self.completed = completed


def complete_with_write(worker_no: int, completion: Completion, write: Write, *, tries: int | None = None) -> Completed:
    """The phase's own writes, the fenced transition, the history and the hand-over: one commit, or nothing.

    The write is repeated, and not the phase, while PostgreSQL cannot just now or another transaction holds the job's
    row. Between two tries nothing is kept locked, and the time is not the attempt's: each try is bounded by itself.
    After so many ``tries`` that found the row locked, StillLocked is raised.
    """
    attempt = completion.attempt
    complete = partial(complete_all, worker_no=worker_no, completions=[completion])
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


def _try(attempt: Attempt, write: Write, complete: Callable[[Connection], list[Answer]]) -> Completed:
    attempt.begin_write()
    with database.engine().begin() as connection, attempt.writing(database.raw(connection)):
        write(connection)
        [(completed, moved)] = complete(connection)
        if isinstance(completed, Locked):
            raise StillLocked
        if isinstance(completed, Lost):
            raise StaleClaim(f"job {attempt.job_id}: fence {attempt.fence} is no longer held; its result was discarded")
        if not moved:
            raise _Before(completed)
        if failpoints.armed:
            failpoints.reach("own_write.executed")
    if failpoints.armed:
        _committed()
    return completed


def _committed() -> None:
    try:
        failpoints.reach("own_write.committed")
    except failpoints.AnswerLost as lost:
        raise OperationalError(str(lost), None, lost, connection_invalidated=True) from lost


def _ask_for_row(attempt: Attempt) -> None:
    """A write that is sure to find the row locked is not run in vain."""
    with database.engine().begin() as connection:
        if settlement.hold(connection, attempt.job_id, attempt.fence) is None:
            raise StillLocked


def write_of(attempt: Attempt, done: Done) -> tuple[Write, bool]:
    """What is written with the end of the phase, and whether other jobs may share the transaction.

    An async function's statements come one by one, and many children take long: both get transactions of their own.
    """
    if done.children is not None:
        return partial(submit_children, attempt, done.children), len(done.children.bodies) <= SHARED_CHILDREN
    return attempt.place.writer(attempt, done), not inspect.iscoroutinefunction(done.write)


def submit_children(attempt: Attempt, children: Children[Any], connection: Connection) -> None:
    """They exist if and only if the job waits for them. None at all are a batch, too."""
    for first in range(0, max(len(children.bodies), 1), CHUNK):
        settlement.spawn(connection, attempt.job_id, children, children.bodies[first : first + CHUNK])
        if failpoints.armed:
            failpoints.reach("children.written")


def settle_with_write(worker: WorkerProcess, completion: Completion, done: Done) -> None:
    """End the attempt, sharing a commit if it can; while an application holds its job, without its thread."""
    attempt = completion.attempt
    write, shares = write_of(attempt, done)
    attempt.begin_write()
    if shares:
        shared = worker.writes.complete(SharedWrite(completion, write))
        if shared is not None:
            finished(worker, attempt, shared)
            return
    try:
        finished(worker, attempt, complete_with_write(worker.no, completion, write, tries=TRIES))
    except StillLocked:
        worker.log.info(
            "settled later: another transaction holds the job", job=str(attempt.job_id), fence=attempt.fence
        )
        attempt.detach()
        # Its place is free from here on: another worker takes the next phase.
        complete = partial(complete_with_write, worker.no, replace(completion, continuing=None), write)
        threading.Thread(target=_settle_later, args=(worker, attempt, complete), daemon=True).start()
    except SQLAlchemyError as error:
        # Also what only a COMMIT finds.
        worker.writes.leave_alone([attempt.spec.queue], error)
        raise


def _settle_later(worker: WorkerProcess, attempt: Attempt, complete: Callable[[], Completed]) -> None:
    """The work is done and its write waits for a row that an application holds. No worker thread waits with it."""
    try:
        finished(worker, attempt, complete())
    except BaseException as error:
        if attempt.finish():
            settle_for_good(worker, attempt, error)
