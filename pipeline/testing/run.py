"""What a test sees of a run, in memory or on real servers: the same names, so that one test runs with both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from pipeline.declare.job import PLAIN
from pipeline.declare.registry import workflows
from pipeline.declare.states import Outcome, Status
from pipeline.journey import submit as steer

if TYPE_CHECKING:
    from typing import Unpack

    from sqlalchemy import Engine

    from pipeline.declare.options import OneJob
    from pipeline.handle import JobHandle
    from pipeline.journey.submit import Body
    from pipeline.store.gateway.client import SignalAnswer


class Named(Protocol):
    """A ``Workflow``."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True)
class AttemptRecord:
    """One attempt at one phase, in the job's history. ``number``: 1 for the first attempt at its phase.

    >>> job = run.submit(orders, {"order": 17})
    >>> run.drain()
    >>> [(one.phase, one.number, one.outcome) for one in job.attempts]
    [('check-stock', 1, 'succeeded'), ('charge', 1, 'succeeded')]

    ``error``: what the phase raised and where, or why the attempt was ended.
    """

    phase: str
    outcome: Outcome
    number: int
    fence: int
    error: str | None = None


@dataclass(frozen=True)
class Seen:
    """A job at one moment. ``due``: when a job that waits for a time may run; ``wait_reason``: why it waits."""

    workflow: str
    phase: str
    status: Status
    body: dict[str, Any]
    results: dict[str, Any]
    attempts: list[AttemptRecord]
    crashes: int
    error: str | None
    due: datetime | None
    wait_reason: str | None
    tags: list[str]


class JobRecord:
    """A job of the run. What it says is true at the moment in which it is asked.

    >>> job = run.submit(orders, {"order": 17}, tags=["vip"])
    >>> run.drain()
    >>> job.status, job.phase, job.tags, job.error
    (<Status.SUCCEEDED: 'succeeded'>, 'charge', ['vip'], None)
    """

    def __init__(self, run: Run, job_id: UUID) -> None:
        self._run = run
        self.id = job_id

    def __repr__(self) -> str:
        seen = self.seen
        return f"<job {self.id} {seen.workflow}.{seen.phase} {seen.status}: {seen.error or 'no error'}>"

    @property
    def seen(self) -> Seen:
        """All that there is to see, of one moment."""
        return self._run.look(self.id)

    @property
    def workflow(self) -> str:
        return self.seen.workflow

    @property
    def phase(self) -> str:
        """The phase that it is in, or ended in."""
        return self.seen.phase

    @property
    def status(self) -> Status:
        """``pending``, ``running``, ``retryable``, ``succeeded``, ``failed`` or ``cancelled``."""
        return self.seen.status

    @property
    def body(self) -> dict[str, Any]:
        """As JSON."""
        return self.seen.body

    @property
    def results(self) -> dict[str, Any]:
        """What its phases returned, by their names, as JSON."""
        return self.seen.results

    @property
    def result(self) -> Any:
        """What its last phase returned, of the type that the workflow says. None if it has not succeeded."""
        seen = self.seen
        if seen.status is not Status.SUCCEEDED or seen.phase not in seen.results:
            return None
        return workflows()[seen.workflow].last_result().decode(PLAIN.encode(seen.results[seen.phase]))

    @property
    def attempts(self) -> list[AttemptRecord]:
        """All attempts that have ended, oldest first."""
        return self.seen.attempts

    @property
    def outcomes(self) -> list[tuple[str, str]]:
        """Phase and outcome of each attempt, oldest first: ``[("charge", "retried"), ("charge", "succeeded")]``."""
        return [(one.phase, one.outcome) for one in self.attempts]

    @property
    def crashes(self) -> int:
        """How many have been counted in its phase."""
        return self.seen.crashes

    @property
    def error(self) -> str | None:
        """The last error of a job that waits to be tried again or has failed."""
        return self.seen.error

    @property
    def due(self) -> datetime | None:
        """When it may run, of a job that waits for a time."""
        return self.seen.due

    @property
    def wait_reason(self) -> str | None:
        """Why it waits: ``backoff``, ``scheduled``, ``event``, ``children``, or what a Snooze said."""
        return self.seen.wait_reason

    @property
    def tags(self) -> list[str]:
        """As they were given when it was submitted."""
        return self.seen.tags

    def cancel(self, reason: str = "cancelled by request") -> bool:
        """False if the job has already finished."""
        return steer.cancel(None, self.id, reason)

    def replay(self) -> bool:
        """Start the phase of the failed job again, with fresh budgets. False if the job is not failed."""
        return steer.replay(None, self.id)

    def signal(self, event: str, body: object = None) -> SignalAnswer:
        """Tell the job of an event; see ``pipeline.signal``."""
        return steer.signal(None, self.id, event, body)


class Run(ABC):
    """Workflows under test: what is submitted waits until ``drain``, and time passes when ``advance`` says so.

    >>> def test_an_order_is_charged(pipeline_run: Run) -> None:  # the fixture, in memory or with --pipeline-servers
    ...     job = pipeline_run.submit(orders, {"order": 17})
    ...     pipeline_run.drain()
    ...     assert job.result == f"charged with {job.id}:charge"
    >>> test_an_order_is_charged(run)

    What code under test submits by itself (``orders.submit(…)``, ``pipeline.submit(…)``) is a job of the run, too.
    """

    @property
    @abstractmethod
    def engine(self) -> Engine | None:
        """The database of the application under test. ``Done(write=…)`` writes to it."""

    def submit(self, workflow: Named | str, body: Body | None = None, **options: Unpack[OneJob]) -> JobRecord:
        """Submit a job, as ``pipeline.submit`` does, with its options and its refusals."""
        name = workflow if isinstance(workflow, str) else workflow.name
        return self.job(steer.submit(None, name, body, **options))

    def job(self, job: UUID | JobHandle[Any]) -> JobRecord:
        """Any job, by its id or by what a submit has returned."""
        return JobRecord(self, job if isinstance(job, UUID) else job.id)

    @abstractmethod
    def jobs(self, workflow: Named | str | None = None) -> Sequence[JobRecord]:
        """All jobs, or those of one workflow, oldest first."""

    @abstractmethod
    def look(self, job_id: UUID) -> Seen:
        """The job now. LookupError if there is none."""

    @abstractmethod
    def drain(self) -> None:
        """Run everything that is due, and what becomes due by that, until nothing is left that may run now."""

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let time pass. Without an amount: until the next job is due, if one waits for a time.

        Nothing runs by that; ``drain`` runs what is due then.
        """
        by = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        if by < timedelta(0):
            raise ValueError(f"time moves on only, not by {by}")
        self._advance(by or None)

    @abstractmethod
    def kill_at(self, phase: str, *, step: str | None = None, times: int = 1) -> None:
        """The next attempts at this phase die: their process is killed when the phase, or the function of this step
        (``job.step``), has returned.

        Nothing of that is committed, but what it did outside has happened, and happens again: this is where
        idempotency keys prove themselves. What earlier steps of the attempt returned is kept. A crash is counted, and
        the job runs again. ``phase``: ``"charge"``, or ``"orders.charge"`` where several have one of that name.
        """

    @abstractmethod
    def _advance(self, by: timedelta | None) -> None: ...


def check_phase(phase: str) -> str:
    """The queue of the one phase that is meant. LookupError if there is none, or several."""
    queues = [one.spec.queue for workflow in workflows().values() for one in workflow.phases]
    found = [queue for queue in queues if phase in (queue, queue.partition(".")[2])]
    if len(found) != 1:
        raise LookupError(f"no one phase is meant by {phase!r}: {', '.join(found or queues) or 'none is declared'}")
    return found[0]
