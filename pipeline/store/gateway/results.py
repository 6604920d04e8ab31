"""How jobs are and how they ended, for whoever submitted them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from pipeline.declare.states import FINAL, Status
from pipeline.store.engine import Wire

CHANNEL = "pipeline_ended"
LISTEN = f"LISTEN {CHANNEL}"
# What is marked here is marked again by whoever comes back after a crash: nothing needs to reach the disk.
HASTY = "SET synchronous_commit = off"
AWAIT = "SELECT job_id, answer FROM pipeline.await_ends(%s::uuid[])"
STATUS = """SELECT id, workflow, phase, state, attempts, crashes, progress_done, progress_total, waits_for, due_at,
    error, result::text FROM pipeline.job_status(%s::uuid[])"""

AwaitAnswer = Literal["noted", "ended", "locked", "unknown"]


@dataclass(frozen=True, slots=True)
class JobStatus:
    """How a job was when it was looked at.

    >>> status = orders.submit({"order": 17}).status()
    >>> status.phase, status.attempts, status.is_final
    ('check-stock', 0, False)

    ``attempts`` and ``crashes`` are counted in its ``phase``. ``progress`` is what the phase reported: done, total.
    ``wait_reason``: why it does not run just now, and ``due_at`` until when, where it waits for a time.
    """

    id: UUID
    workflow: str
    phase: str
    state: Status
    attempts: int
    crashes: int
    progress: tuple[int, int] | None
    wait_reason: str | None
    due_at: datetime | None
    error: str | None
    # The JSON of what its last phase returned, once it has succeeded; None: nothing.
    result: str | None = field(default=None, repr=False)

    @property
    def is_final(self) -> bool:
        """Whether the job has ended. A failed one can still be replayed."""
        return self.state in FINAL


def listen(connection: Wire) -> None:
    """From here on this session hears of every job that ends and is awaited, by anybody in this database."""
    connection.execute(HASTY)
    connection.execute(LISTEN)


def await_ends(connection: Wire, jobs: Iterable[UUID]) -> dict[UUID, AwaitAnswer]:
    """Ask to hear when these jobs end; what is ``locked`` is asked for again soon."""
    return dict(connection.execute(AWAIT, (list(jobs),)).fetchall())


def look(connection: Wire, jobs: Iterable[UUID]) -> dict[UUID, JobStatus]:
    """These jobs now, without those that do not exist."""
    found = {}
    for id_, workflow, phase, state, attempts, crashes, done, total, waits, due, error, result in connection.execute(
        STATUS, (list(jobs),)
    ):
        progress = None if total is None else (done, total)
        found[id_] = JobStatus(
            id_, workflow, phase, Status(state), attempts, crashes, progress, waits, due, error, result
        )
    return found
