"""The end of a phase that succeeded: what PostgreSQL makes of it, one type for each answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

# Whether this very statement moved the job: an earlier one may have, whose answer was lost.
COMPLETE = text("""SELECT verdict, fence, send, max_attempts, at,
        verdict IN ('done', 'handed_over') OR (verdict = 'continued' AND at = now()) AS moved
    FROM pipeline.complete(:worker, ARRAY[CAST(:id AS uuid)], ARRAY[CAST(:fence AS bigint)],
                           ARRAY[CAST(:result AS jsonb)], ARRAY[CAST(:continuing AS text)])""")


@dataclass(frozen=True, slots=True)
class Succeeded:
    """That was the last phase."""


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The job waits at the gate of its next phase."""


@dataclass(frozen=True, slots=True)
class Continued:
    """The job is this worker's again, in its next phase and under a new fence; the message at hand carries it."""

    fence: int
    send: int
    max_attempts: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Repeated:
    """This very attempt had committed before, and only the answer was lost."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The attempt no longer holds the job: nothing of it is kept."""


@dataclass(frozen=True, slots=True)
class Locked:
    """Another transaction holds the row: nothing was done, ask again."""


Completed = Succeeded | HandedOver | Continued | Repeated | Lost | Locked

# The answers that say no more than their name.
PLAIN: Final[dict[str, Completed]] = {
    "done": Succeeded(),
    "handed_over": HandedOver(),
    "repeated": Repeated(),
    "lost": Lost(),
    "locked": Locked(),
}


class Answer(NamedTuple):
    """Whether it was this statement that moved the job, or an earlier one."""

    completed: Completed
    moved: bool


def complete(
    connection: Connection, job_id: UUID, fence: int, *, worker_no: int, result: str | None, continuing: str | None
) -> Answer:
    """End the phase of one job; ``continuing`` is the next queue if this worker may go on with the job."""
    values = {"worker": worker_no, "id": job_id, "fence": fence, "result": result, "continuing": continuing}
    columns = dict(connection.execute(COMPLETE, values).mappings().one())
    moved: bool = columns.pop("moved")
    return Answer(read(**columns), moved)


def read(
    *, verdict: str, fence: int | None, send: int | None, max_attempts: int | None, at: datetime | None
) -> Completed:
    """A row of pipeline.complete. KeyError if the verdict is none that this code knows."""
    if verdict != "continued":
        return PLAIN[verdict]
    assert fence and send and max_attempts and at
    return Continued(fence, send, max_attempts, at)
