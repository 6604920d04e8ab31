"""A circuit breaker around one call of one job: pybreaker judges, PostgreSQL holds the state for every worker.

Each call has a breaker object of its own, so that no call waits for another's. pybreaker knows no coroutines but
tornado's: it is asked before the call and told after it, for a coroutine both in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from pybreaker import STATE_CLOSED, STATE_HALF_OPEN, STATE_OPEN, CircuitBreaker, CircuitBreakerError
from pybreaker import CircuitBreakerStorage as Storage
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pipeline.declare.errors import (
    Cancelled,
    Crashed,
    Permanent,
    Retry,
    Snooze,
    StaleClaim,
    classify,
    database_is_unable,
)
from pipeline.declare.services import Guard
from pipeline.declare.waits.limits import Breaker
from pipeline.journey.checkpoint import Interrupted
from pipeline.journey.rate_limits import BUSY, is_locked
from pipeline.observe.instruments import count
from pipeline.store import database
from pipeline.store.limits import breakers

if TYPE_CHECKING:
    from pipeline.journey.attempt import Attempt

Answer = TypeVar("Answer")
# The gate holds the jobs of an open breaker by itself and lets them go when it closes: they need not know when that is.
SOON = 1.0
DEADLOCK = "40P01"
# These say something about the job, not about what it calls.
NO_VERDICT = (Snooze, Permanent, Cancelled, StaleClaim, Crashed)


class CallGuard(Guard):
    """One call under a breaker; see ``Breaker.calling``. Of all workers exactly one is inside while it is half-open."""

    def __init__(self, breaker: Breaker, name: str, attempt: Attempt) -> None:
        self._breaker = breaker
        self._name = name
        self._attempt = attempt
        self._inner: AbstractContextManager[None] | None = None

    def __enter__(self) -> None:
        self._inner = _guarded(self._breaker, self._name, self._attempt)
        self._inner.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool | None:
        assert self._inner is not None
        return self._inner.__exit__(kind, error, where)

    async def __aenter__(self) -> None:
        entering = asyncio.ensure_future(asyncio.to_thread(self.__enter__))
        try:
            await asyncio.shield(entering)
        except asyncio.CancelledError as cancelled:
            # The thread enters all the same, and may by that have become the only one to probe: it leaves again.
            await asyncio.wait([entering])
            if entering.exception() is None:
                await self.__aexit__(type(cancelled), cancelled, cancelled.__traceback__)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool | None:
        return await asyncio.to_thread(self.__exit__, kind, error, where)


@contextmanager
def _guarded(breaker: Breaker, name: str, attempt: Attempt) -> Iterator[None]:
    state = State(breaker, name, attempt)
    judge = CircuitBreaker(
        fail_max=breaker.failures,
        reset_timeout=breaker.pause,
        exclude=[lambda error: not state.counts(error)],
        state_storage=state,
        name=name,
    )
    try:
        with judge.calling(), state.watched():
            yield
    except CircuitBreakerError as error:
        raise Snooze(state.wait, "breaker", f"breaker {name}: {error}; {state.error}".rstrip("; ")) from None
    except TimedOut as error:
        # Counted; what it means for the job is said where it is settled.
        raise error.interrupted from None


class TimedOut(Exception):
    """The attempt was interrupted by its time limit: the outside system did not answer in time."""

    def __init__(self, interrupted: BaseException) -> None:
        super().__init__("the time limit was exceeded")
        self.interrupted = interrupted


class State(Storage):
    """What pybreaker asks and tells about a breaker, for one call. Whether it may be made was decided here."""

    def __init__(self, breaker: Breaker, name: str, attempt: Attempt) -> None:
        super().__init__(name)
        self.error = ""
        self._breaker = breaker
        self._attempt = attempt
        self._job: UUID = attempt.job_id
        self._failures = self._successes = 0
        self._verdict = True
        try:
            entered = _ask(lambda connection: breakers.enter(connection, name, self._job, breaker.probe))
        except DBAPIError as error:
            if not is_locked(error):
                raise
            raise Snooze(BUSY, "breaker", f"breaker {name} is held by another transaction") from None
        self._state, self._seconds = entered

    @property
    def wait(self) -> float:
        """Of a job that may not call."""
        return min(self._seconds, SOON) if self._attempt.rate_limit == self.name else self._seconds

    def counts(self, error: BaseException) -> bool:
        """Whether it is a failure of the outside system."""
        return isinstance(error, TimedOut) or isinstance(classify(error, datetime.now(UTC)), Retry)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note how the call ended. An attempt that was told to stop, or lost, says nothing about what it called."""
        try:
            yield
        except BaseException as error:
            self.error = f"{type(error).__name__}: {error}"[:500]
            told_to_stop = isinstance(error, Interrupted | asyncio.CancelledError)
            if told_to_stop and self._attempt.reason == "time_limit":
                raise TimedOut(error) from None
            if told_to_stop or not isinstance(error, Exception) or isinstance(error, NO_VERDICT):
                self._verdict = False
                self._tell(lambda connection: breakers.leave(connection, self.name, self._job))
            raise

    @property
    def state(self) -> str:
        """As it was when the call was let in, or as this call made it."""
        return self._state

    @state.setter
    def state(self, state: str) -> None:
        if state == STATE_OPEN:
            pause = self._breaker.pause
            self._tell(lambda connection: breakers.open_breaker(connection, self.name, self._job, pause))
            self._seconds = pause
            count("breaker.opened")
        elif state == STATE_CLOSED and self._state == STATE_HALF_OPEN:
            self._tell(lambda connection: breakers.close(connection, self.name, self._job))
            count("breaker.closed")
        self._state = state

    @property
    def counter(self) -> int:
        """Failures in a row, this one included."""
        return self._failures

    def increment_counter(self) -> None:
        """Count this failure; one that finds the breaker open reaches the limit by that."""
        most = self._breaker.failures
        fence, error = self._attempt.fence, self.error
        counted: list[int | None] = []
        told = self._tell(
            lambda connection: counted.append(
                breakers.failed(connection, self.name, self._job, fence, most=most, error=error)
            )
        )
        # One that could not be told is an ordinary failure of the job.
        self._failures = 0 if not told else most if counted[-1] is None else counted[-1]

    def reset_counter(self) -> None:
        """The call succeeded; that of a probe is told by closing."""
        if self._verdict and self._state == STATE_CLOSED:
            self._tell(lambda connection: breakers.succeeded(connection, self.name))

    @property
    def success_counter(self) -> int:
        """Whether the probe succeeded: one is enough to close."""
        return self._successes

    def increment_success_counter(self) -> None:
        """Count the probe, if it has a verdict."""
        self._successes += self._verdict

    def reset_success_counter(self) -> None:
        """Nothing is kept of it beyond this call."""
        self._successes = 0

    @property
    def opened_at(self) -> datetime:
        """Just now, as far as pybreaker is concerned: PostgreSQL has compared the times already, by its own clock."""
        return datetime.now(UTC)

    @opened_at.setter
    def opened_at(self, moment: datetime) -> None:
        """PostgreSQL notes the moment itself."""

    def _tell(self, say: Callable[[Connection], object]) -> bool:
        """False if PostgreSQL cannot just now, or an application holds the breaker: then nothing was changed.

        The call was made, and what became of it counts: it is not made again because nobody could be told of it.
        """
        try:
            _ask(say)
        except Exception as error:
            if not database_is_unable(error):
                raise
            return False
        return True


def _ask(work: Callable[[Connection], Answer]) -> Answer:
    """In a transaction of its own; again after a deadlock."""
    for last in (False, False, True):
        try:
            with database.engine().begin() as connection:
                return work(connection)
        except DBAPIError as error:
            if last or getattr(error.orig, "sqlstate", None) != DEADLOCK:
                raise
    raise AssertionError("unreachable")
