"""What an attempt reads and writes while it runs. Each write is fenced, and repeated while PostgreSQL is unable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from dramatiq.middleware import Interrupt
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from pipeline.declare.errors import database_is_unable
from pipeline.declare.services import Services
from pipeline.event_links import event_link
from pipeline.store import database
from pipeline.store.gateway import session, settlement

if TYPE_CHECKING:
    from pipeline.journey.attempt import Attempt

Answer = TypeVar("Answer")

FIRST, LONGEST = 0.05, 2.0


class Linking(Services):
    """Links with the secret of the settings."""

    def event_link(self, job: UUID, event: str, expires: timedelta, body: object, fence: int) -> str:
        return event_link(job, event, expires=expires, body=body, fence=fence)


class Interrupted(Interrupt):
    """Raised inside a running phase: cancelled, lost, out of time, or the worker shuts down."""


def read_rows(statement: str, parameters: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """A short query of a phase, in a transaction of its own."""
    with database.engine().connect() as connection:
        return session.read(connection, statement, parameters)


def read_ends(batch: UUID, after: UUID | None, skip: int, most: int) -> Sequence[Mapping[str, Any]]:
    """How children ended, some after one, in the order in which they were submitted."""
    with database.engine().connect() as connection:
        return settlement.ends(connection, batch, after, skip, most)


def report_progress(attempt: Attempt, done: int, total: int) -> bool:
    """Fenced; False when the attempt no longer holds its job. A report that finds the row locked is left out."""

    def write(connection: Connection) -> bool | None:
        return settlement.progress(connection, attempt.job_id, attempt.fence, done, total)

    return repeat(attempt, write, twice_is_harmless=True) is not False


def keep_rows(attempt: Attempt, statement: str, parameters: Mapping[str, Any]) -> bool:
    """A checkpoint, written only while the attempt holds its job; False when it does not."""

    def write(connection: Connection) -> bool | None:
        won = settlement.hold(connection, attempt.job_id, attempt.fence)
        if won:
            session.write(connection, statement, parameters)
        return won

    pause = FIRST
    while (won := repeat(attempt, write, twice_is_harmless=False)) is None:
        attempt.pause(pause)
        pause = min(2 * pause, LONGEST)
    return won


def repeat(attempt: Attempt, work: Callable[[Connection], Answer], *, twice_is_harmless: bool) -> Answer:
    """Run fenced work in a transaction, again while PostgreSQL cannot just now, until the attempt must stop.

    A commit whose answer was lost may have been kept: then it is not repeated, unless that is harmless.
    """
    pause = FIRST
    while True:
        committing = False
        try:
            with database.engine().begin() as connection, attempt.writing(database.raw(connection)):
                answer = work(connection)
                committing = True
            return answer
        except SQLAlchemyError as error:
            # Also when the attempt was told to stop and the statement was cancelled for it.
            if attempt.reason is not None:
                raise Interrupted from error
            if not database_is_unable(error) or (committing and not twice_is_harmless):
                raise
        attempt.pause(pause)
        pause = min(2 * pause, LONGEST)
