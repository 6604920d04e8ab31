"""What an exception means for a job: try again, give up, or wait at no cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from uuid import UUID

LONGEST = 366 * 24 * 3600.0
# The least that a Retry-After is taken for: a server that says 0, or a moment that has passed, is asked no faster.
LEAST = 1.0
TRANSIENT_HTTP = frozenset({408, 425, 429})


class PipelineError(Exception):
    """Base of every error this project raises on purpose."""

    # By the child process in which the original was raised: what to keep of it.
    described: str | None = None


class Transient(PipelineError):
    """Raise it when trying again later may help. Costs one execution of the phase's budget.

    >>> @complaints.phase
    ... def deliver(job: Job) -> None:
    ...     raise Transient("the printer has no paper")
    """


class Permanent(PipelineError):
    """Raise it when no retry can help (bad input, not found). The job fails at once.

    >>> @complaints.phase
    ... def address(job: Job) -> None:
    ...     raise Permanent(f"there is no customer {job.body['customer']}")
    """


class Misuse(Permanent, TypeError):
    """The phase's code uses the pipeline wrongly and would do so again: the job fails at once."""


class Snooze(PipelineError):
    """Raise it when the job must wait for something outside. Costs no budget.

    >>> raise Snooze(90, "maintenance")
    Traceback (most recent call last):
    pipeline.declare.errors.Snooze: waits 90.0 s: maintenance

    ``seconds`` is how long; ``reason`` is one word for the timeline (rate_limit, breaker, …). ``asked``: the other side
    asked for it. Such waits grow longer, and after a hundred in a row without progress each costs an execution.
    """

    step: str | None = None

    def __init__(self, seconds: float, reason: str = "snoozed", detail: str = "", *, asked: bool = False) -> None:
        super().__init__(detail or f"waits {seconds:.1f} s: {reason}")
        self.seconds = 0.0 if math.isnan(seconds) else min(max(float(seconds), 0.0), LONGEST)
        self.reason = reason
        self.asked = asked


class Cancelled(PipelineError):
    """The job was cancelled while this attempt ran; nothing of it is kept.

    >>> job = Job({"order": 17})
    >>> job.lost = "cancelled"  # as the heartbeat of a real attempt finds out
    >>> job.progress(10, 100)
    Traceback (most recent call last):
    pipeline.declare.errors.Cancelled: job 00000000-0000-0000-0000-000000000000 was cancelled
    """


class StaleClaim(PipelineError):
    """The attempt lost its job to another holder; nothing of it is kept.

    >>> services = FakeServices(keep=lambda statement, values: False)
    >>> Job({"order": 17}, services=services).keep("INSERT INTO pages VALUES (:page)", page=1)
    Traceback (most recent call last):
    pipeline.declare.errors.StaleClaim: job 0...0: fence 1 is no longer held; nothing was kept
    """


class Crashed(PipelineError):
    """The isolated child process of a phase died. Costs one crash of the budget."""


class JobFailed(PipelineError):
    """The job whose result was asked for has failed. It can be replayed, and then ends anew.

    >>> refunds = Workflow("refunds")
    >>> @refunds.phase
    ... def refund(job: Job) -> None:
    ...     raise Permanent("there is no order 17")
    >>> try:
    ...     refunds.submit({"order": 17}).result(timeout=30)
    ... except JobFailed as error:
    ...     print(error.phase, "|", error.error)
    refunds.refund | Permanent: there is no order 17 (...)
    """

    def __init__(self, job: UUID, phase: str, error: str) -> None:
        super().__init__(job, phase, error)
        self.job = job
        self.phase = phase
        self.error = error

    def __str__(self) -> str:
        return (
            f"job {self.job} failed in {self.phase}: {self.error} "
            f"(see: pipeline status {self.job}; to run it again: pipeline replay {self.job})"
        )


class JobCancelled(PipelineError):
    """The job whose result was asked for was cancelled. (``Cancelled`` is what a phase is told of its own job.)

    >>> job = orders.submit({"order": 17})
    >>> job.cancel("the customer changed her mind")
    True
    >>> job.result()
    Traceback (most recent call last):
    pipeline.declare.errors.JobCancelled: job ... was cancelled: the customer changed her mind (see: ...)
    """

    def __init__(self, job: UUID, reason: str) -> None:
        super().__init__(job, reason)
        self.job = job
        self.reason = reason

    def __str__(self) -> str:
        return f"job {self.job} was cancelled: {self.reason} (see: pipeline status {self.job})"


class BadInput(PipelineError, ValueError):
    """A caller asked for something impossible; the message says what to do instead.

    >>> orders.submit({"order": float("nan")})
    Traceback (most recent call last):
    pipeline.declare.errors.BadInput: the body cannot be stored as JSON: ...
    """


@dataclass(frozen=True)
class Retry:
    """Try again after the phase's backoff."""


@dataclass(frozen=True)
class GiveUp:
    """Fail now; no retry can help."""


@dataclass(frozen=True)
class SnoozeFor:
    """Wait at no cost. ``asked``: because the other side asked for it, which is free only so many times.

    ``step``: kept with the wait, as a step that need not be done again.
    """

    seconds: float
    reason: str
    asked: bool = field(default=False, compare=False)
    step: str | None = field(default=None, compare=False)


Verdict = Retry | GiveUp | SnoozeFor


def classify(error: BaseException, now: datetime) -> Verdict:
    """Decide what ``error`` means. Unknown exceptions count as transient."""
    if isinstance(error, Snooze):
        return SnoozeFor(error.seconds, error.reason, error.asked, error.step)
    if isinstance(error, Permanent):
        return GiveUp()
    if isinstance(error, Transient):
        return Retry()
    if database_is_unable(error):
        return SnoozeFor(1.0, "connection_lost")
    status = http_status(error)
    if status is None:
        return Retry()
    if status in TRANSIENT_HTTP or status >= 500:
        wait = retry_after(_header(error, "retry-after"), now)
        return Retry() if wait is None else SnoozeFor(wait, "retry_after", asked=True)
    return GiveUp() if 400 <= status < 500 else Retry()


def what_was_said(error: BaseException | None) -> str:
    """An error of a connection to PostgreSQL in one line: each address with its reason, without libpq's question."""
    lines = [line.strip(" \t-") for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith(("Is the server running", "Multiple connection"))]
    return "; ".join(told)[:500]


# What PostgreSQL says when it cannot just now, and may soon: shutting down, starting, or out of connections, memory or
# space (57P, 53), hung up (08), a standby, or read-only (25006), a session it ended (25P03), a broken disk (58030), a
# deadlock or a conflict that another try resolves (40001, 40P01), a lock that was not to be had in time (55P03).
UNABLE_CLASSES = ("08", "53", "57P")
UNABLE_STATES = frozenset({"25006", "25P03", "40001", "40P01", "55P03", "58030"})


def database_is_unable(error: BaseException) -> bool:
    """Whether PostgreSQL is away or cannot just now: nothing the job did wrong, and the same may work in a moment."""
    cause = getattr(error, "orig", None) or error
    state = getattr(cause, "sqlstate", "")
    # By name, because rules know no driver; of its kinds, those without a state never heard from a server.
    names = {kind.__name__ for kind in type(cause).__mro__}
    unreachable = state is None and "OperationalError" in names
    no_connection_free = "TimeoutError" in names and "SQLAlchemyError" in names
    unable = isinstance(state, str) and (state.startswith(UNABLE_CLASSES) or state in UNABLE_STATES)
    return unreachable or unable or no_connection_free or getattr(error, "connection_invalidated", False) is True


def retry_after(value: str | None, now: datetime, cap: float = 3600.0) -> float | None:
    """Seconds asked for by a Retry-After header (a number or a date): at least a second, at most ``cap``.

    >>> retry_after("120", datetime.now(UTC))
    120.0
    """
    if not value:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(max(float(value[:9]), LEAST), cap)
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max((moment - now).total_seconds(), LEAST), cap)


def http_status(error: BaseException) -> int | None:
    """The status of the HTTP answer that the error is about, if it is about one."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) else None


def _header(error: BaseException, name: str) -> str | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    value = headers.get(name) if headers is not None and hasattr(headers, "get") else None
    return value if isinstance(value, str) else None
