"""Jobs that continued in this worker and that nobody here runs: they are sent again."""

from __future__ import annotations

from functools import partial
from time import sleep
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from pipeline.observe import logs
from pipeline.store import database
from pipeline.store.gateway import sending, settlement
from pipeline.store.gateway.settlement import Release, Snooze

if TYPE_CHECKING:
    from pipeline.journey.attempt import Attempt, Held

log = logs.get("pipeline.worker")

# Rows that another transaction holds.
ASK_AGAIN = 0.5
LOST_CONNECTION = Snooze("lost_connection", 0.0, None, asked=False)


def recall(worker_no: int, attempt: Attempt) -> None:
    """It committed, but the answer was lost, so that nobody continues with the job."""
    ask = partial(sending.continued, worker_no=worker_no, jobs=[attempt.job_id], fences=[attempt.fence])
    for job_id, fence in database.insist(ask):
        wait = partial(settlement.settle, job_id=job_id, fence=fence, transition=LOST_CONNECTION)
        while database.insist(wait) == "locked":
            sleep(ASK_AGAIN)


def release(held: Held) -> None:
    """At the end: what nobody has taken up here waits for another worker. Tried once: its message comes back, too."""
    unbegun = [attempt for attempt in held.all() if attempt.job is None and not attempt.finished]
    try:
        for attempt in unbegun:
            with database.engine().begin() as connection:
                verdict = settlement.settle(connection, attempt.job_id, attempt.fence, Release())
            if verdict != "locked":
                held.remove(attempt)
    except SQLAlchemyError as error:
        log.warning("PostgreSQL is away; jobs are left to redelivery", jobs=len(unbegun), error=str(error))
