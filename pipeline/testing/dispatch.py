"""Small interfaces between an app and the pipeline, so that both sides can be tested without broker or database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID, uuid4

from pipeline.declare.job import Done, Job, as_done, decode
from pipeline.declare.registry import body_codec
from pipeline.declare.services import Services
from pipeline.journey import submit as steer

if TYPE_CHECKING:
    from typing import Unpack

    from pipeline.declare.options import ManyJobs, OneJob
    from pipeline.journey.submit import Body
    from pipeline.store.gateway.callers import SyncCaller


class JobDispatcher(Protocol):
    """What an app needs to start and stop work.

    >>> def place_order(dispatcher: JobDispatcher, number: int) -> None:
    ...     dispatcher.submit("orders", {"order": number})
    >>> place_order(MemoryDispatcher(), 17)
    """

    def submit(
        self,
        workflow: str,
        body: Body | None = None,
        **options: Unpack[OneJob],
    ) -> UUID:
        """Submit one job; see pipeline.submit for the options."""
        ...

    def submit_many(
        self,
        workflow: str,
        bodies: Sequence[Body],
        **options: Unpack[ManyJobs],
    ) -> list[UUID]:
        """Submit many jobs in one round trip."""
        ...

    def cancel(self, job_id: UUID) -> bool:
        """Cancel a job that has not ended."""
        ...


class JobHandler(Protocol):
    """The work of a phase: outside effects first, database writes in the returned Done.

    >>> handler: JobHandler = check_stock
    """

    def __call__(self, job: Job) -> object:
        """Do the work; see pipeline.Done for what may be returned."""
        ...


@dataclass(frozen=True)
class TransactionDispatcher:
    """Dispatches inside the caller's transaction (any caller that is not async), or at once without one.

    >>> with Session(engine()) as session, session.begin():
    ...     job_id = TransactionDispatcher(session).submit("orders", {"order": 17})
    """

    caller: SyncCaller | None = None

    def submit(
        self,
        workflow: str,
        body: Body | None = None,
        **options: Unpack[OneJob],
    ) -> UUID:
        return steer.submit(self.caller, workflow, body, **options)

    def submit_many(
        self,
        workflow: str,
        bodies: Sequence[Body],
        **options: Unpack[ManyJobs],
    ) -> list[UUID]:
        return steer.submit_many(self.caller, workflow, bodies, **options)

    def cancel(self, job_id: UUID) -> bool:
        return steer.cancel(self.caller, job_id)


@dataclass
class MemoryDispatcher:
    """Remembers the workflow and the body of what was submitted, not the options; for an app's own tests.

    >>> dispatcher = MemoryDispatcher()
    >>> job_id = dispatcher.submit("orders", {"order": 17})
    >>> dispatcher.submitted
    [('orders', {'order': 17})]
    """

    submitted: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    cancelled: list[UUID] = field(default_factory=list)

    def submit(
        self,
        workflow: str,
        body: Body | None = None,
        **options: Unpack[OneJob],
    ) -> UUID:
        self.submitted.append((workflow, decode(body_codec(workflow).encode(body or {}))))
        return uuid4()

    def submit_many(
        self,
        workflow: str,
        bodies: Sequence[Body],
        **options: Unpack[ManyJobs],
    ) -> list[UUID]:
        return [self.submit(workflow, body) for body in bodies]

    def cancel(self, job_id: UUID) -> bool:
        self.cancelled.append(job_id)
        return True


def run_handler(
    handler: JobHandler,
    body: Mapping[str, Any],
    *,
    id: UUID = Job.id,  # noqa: A002  the name it has in Job
    workflow: str = Job.workflow,
    phase: str = Job.phase,
    results: Mapping[str, Any] | None = None,
    attempt: int = Job.attempt,
    fence: int = Job.fence,
    trace_id: str = Job.trace_id,
    span_id: str = Job.span_id,
    services: Services | None = None,
) -> Done:
    """Run a handler on a job made up for a test; its write is returned, not run.

    >>> run_handler(check_stock, {"order": 17}).result
    {'left': 3}
    """
    job = Job(
        body=dict(body),
        id=id,
        workflow=workflow,
        phase=phase,
        results=dict(results or {}),
        attempt=attempt,
        fence=fence,
        trace_id=trace_id,
        span_id=span_id,
        services=services or Services(),
    )
    return as_done(handler(job))
