"""Waiting for a job's end in memory: whoever waits runs what is due."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from uuid import UUID

from pipeline.declare.states import Status
from pipeline.journey.ends import Ends, Enough, Kind
from pipeline.store.gateway.results import JobStatus
from pipeline.testing.memory.rows import Row


class WouldWait(RuntimeError):
    """Time does not pass by itself in memory, so that this would be waited for in vain."""


class MemoryEnds(Ends):
    """``drain`` runs what is due; ``find`` is the job, if there is one."""

    def __init__(self, find: Callable[[UUID], Row | None], drain: Callable[[], None]) -> None:
        self._find = find
        self._drain = drain

    def wait(self, job: UUID, kind: Kind, enough: Enough) -> Future[JobStatus | None]:
        """How the job is, once that is enough."""
        if kind != "look" and not enough(self._status(job)):
            self._drain()
        found, answer = self._status(job), Future[JobStatus | None]()
        if enough(found):
            answer.set_result(found)
        else:
            answer.set_exception(WouldWait(f"{found} goes on only after run.advance(…)"))
        return answer

    def _status(self, job: UUID) -> JobStatus | None:
        row = self._find(job)
        return None if row is None else status_of(row)


def status_of(row: Row) -> JobStatus:
    """The job as its handle sees it."""
    return JobStatus(
        id=row.id,
        workflow=row.workflow.name,
        phase=row.spec.name,
        state=row.status,
        attempts=row.attempts,
        crashes=row.crashes,
        progress=row.progress,
        wait_reason=row.wait_reason,
        due_at=row.due,
        error=row.error,
        result=row.results.get(row.spec.name) if row.status is Status.SUCCEEDED else None,
    )
