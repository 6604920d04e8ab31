"""Small interfaces between an app and the pipeline, so that both sides can be tested without broker or database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID, uuid4

from pipeline.declare.job import Job
from pipeline.declare.outcome import Done, as_done
from pipeline.journey import submit as steer


class JobDispatcher(Protocol):
    """What an app needs to start and stop work."""

    def submit(self, workflow: str, body: Mapping[str, Any], **options: Any) -> UUID:
        """Submit one job; see pipeline.submit for the options."""
        ...

    def submit_many(self, workflow: str, bodies: Sequence[Mapping[str, Any]], **options: Any) -> list[UUID]:
        """Submit many jobs in one round trip."""
        ...

    def cancel(self, job_id: UUID) -> bool:
        """Cancel a job that has not ended."""
        ...


class JobHandler(Protocol):
    """The work of a phase: outside effects first, database writes in the returned Done."""

    def __call__(self, job: Job) -> object:
        """Do the work; see pipeline.Done for what may be returned."""
        ...


@dataclass(frozen=True)
class TransactionDispatcher:
    """Dispatches inside the caller's transaction (an SQLAlchemy session or connection), or at once without one."""

    caller: steer.Caller = None

    def submit(self, workflow: str, body: Mapping[str, Any], **options: Any) -> UUID:
        return steer.submit(self.caller, workflow, body, **options)

    def submit_many(self, workflow: str, bodies: Sequence[Mapping[str, Any]], **options: Any) -> list[UUID]:
        return steer.submit_many(self.caller, workflow, bodies, **options)

    def cancel(self, job_id: UUID) -> bool:
        return steer.cancel(self.caller, job_id)


@dataclass
class MemoryDispatcher:
    """Remembers what was submitted; for an app's own tests."""

    submitted: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    cancelled: list[UUID] = field(default_factory=list)

    def submit(self, workflow: str, body: Mapping[str, Any], **options: Any) -> UUID:
        self.submitted.append((workflow, dict(body)))
        return uuid4()

    def submit_many(self, workflow: str, bodies: Sequence[Mapping[str, Any]], **options: Any) -> list[UUID]:
        return [self.submit(workflow, body, **options) for body in bodies]

    def cancel(self, job_id: UUID) -> bool:
        self.cancelled.append(job_id)
        return True


def run_handler(handler: JobHandler, body: Mapping[str, Any], **fields: Any) -> Done:
    """Run a handler on a job made up for a test; its write is returned, not run."""
    return as_done(handler(Job(body=dict(body), **fields)))
