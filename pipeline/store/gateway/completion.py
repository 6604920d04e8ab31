"""The end of a phase that succeeded: what PostgreSQL makes of it, one type for each answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

# Whether this very statement moved the job: an earlier one may have, whose answer was lost.
COMPLETE = text("""SELECT verdict, queue, actor, send, max_attempts, sent_at, fence, body, result,
        verdict IN ('done', 'handed_over') OR (verdict = 'continued' AND sent_at = now()) AS moved
    FROM pipeline.complete(:worker, ARRAY[CAST(:id AS uuid)], ARRAY[CAST(:fence AS bigint)],
                           ARRAY[CAST(:result AS jsonb)], NULL, ARRAY[CAST(:continuing AS text)])""")


class NextPhase(NamedTuple):
    """What the next phase's message is made of, beside what the attempt already holds."""

    queue: str
    actor: str
    send: int
    max_attempts: int
    sent_at: datetime


@dataclass(frozen=True, slots=True)
class Succeeded:
    """That was the last phase."""


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The job waits for its next phase. This worker publishes ``message``; None: the relay sends it."""

    message: NextPhase | None


@dataclass(frozen=True, slots=True)
class Continued:
    """The job is this worker's again, in its next phase and under a new fence; the message at hand carries it."""

    phase: NextPhase
    fence: int
    body: dict[str, Any]
    results: dict[str, Any]


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
    *,
    verdict: str,
    queue: str | None,
    actor: str | None,
    send: int | None,
    max_attempts: int | None,
    sent_at: datetime | None,
    fence: int | None,
    body: dict[str, Any] | None,
    result: dict[str, Any] | None,
) -> Completed:
    """A row of pipeline.complete. KeyError if the verdict is none that this code knows."""
    if verdict not in ("handed_over", "continued"):
        return PLAIN[verdict]
    if verdict == "handed_over" and sent_at is None:
        return HandedOver(None)
    assert queue and actor and send and max_attempts and sent_at
    phase = NextPhase(queue, actor, send, max_attempts, sent_at)
    if verdict == "handed_over":
        return HandedOver(phase)
    assert fence and body is not None
    return Continued(phase, fence, body, result or {})
