"""A source's circuit breaker: pybreaker judges each call, PostgreSQL holds the state for every worker.

Each call has a breaker object of its own, so that no call waits for another's; what it knows is one row of ``sources``,
changed by short transactions of its own (the functions in views.sql). pybreaker knows no coroutines but tornado's: it
is asked before the call and told after it, both in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import httpx
from pybreaker import STATE_CLOSED, STATE_HALF_OPEN, STATE_OPEN, CircuitBreaker, CircuitBreakerError
from pybreaker import CircuitBreakerStorage as Storage
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from actors.scrape.adapters import Unparsable
from actors.scrape.config import ScrapeSettings
from actors.scrape.task import Source
from pipeline import Cancelled, Job, Snooze, StaleClaim, Transient, count, engine

DEADLOCK = "40P01"
ENTER = "SELECT state, seconds, reason FROM source_enter(:source, :job, :probe)"
FAILED = "SELECT source_failed(:source, :job, :fence, :limit, :error)"
SUCCEEDED = "SELECT source_succeeded(:source)"
OPEN = "SELECT source_open(:source, :job, :seconds)"
CLOSE = "SELECT source_close(:source, :job)"
LEAVE = "SELECT source_leave(:source, :job)"


class SourceFault(Exception):
    """The source answered that it cannot serve (5xx)."""


FAILURES = (httpx.RequestError, SourceFault, Unparsable)
# These say something about the job, not about the source.
NO_VERDICT = (Snooze, Cancelled, StaleClaim)


def guarded(source: Source, job: Job, settings: ScrapeSettings) -> AbstractAsyncContextManager[None]:
    """Make one call to the source inside this block.

    Open: raises Snooze before the block runs. A failure inside costs the job an execution (Transient), unless it opens
    the breaker or finds it open (Snooze). Exactly one block of all workers runs while the breaker is half-open.
    """
    return InThreads(_guarded(source, job, settings))


class InThreads(AbstractAsyncContextManager[None]):
    """A context manager that asks PostgreSQL, for a coroutine: it is entered and left in threads."""

    def __init__(self, inner: AbstractContextManager[None]) -> None:
        self._inner = inner

    async def __aenter__(self) -> None:
        entering = asyncio.ensure_future(asyncio.to_thread(self._inner.__enter__))
        try:
            await asyncio.shield(entering)
        except asyncio.CancelledError as cancelled:
            # The thread enters all the same, and may by that have become the source's only probe: it leaves again.
            await asyncio.wait([entering])
            if entering.exception() is None:
                await self.__aexit__(type(cancelled), cancelled, cancelled.__traceback__)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool | None:
        return await asyncio.to_thread(self._inner.__exit__, kind, error, where)


@contextmanager
def _guarded(source: Source, job: Job, settings: ScrapeSettings) -> Iterator[None]:
    state = SourceState(source, job, settings)
    breaker = CircuitBreaker(
        fail_max=settings.breaker_failures,
        reset_timeout=settings.breaker_seconds,
        exclude=[lambda error: not isinstance(error, FAILURES)],
        state_storage=state,
        name=source.name,
    )
    try:
        with breaker.calling(), state.watched():
            yield
    except CircuitBreakerError as error:
        raise Snooze(
            state.seconds, state.reason, f"source {source.name}: {error}; {state.error}".rstrip("; ")
        ) from None
    except FAILURES as error:
        raise Transient(f"source {source.name}: {state.error}") from error


class SourceState(Storage):
    """What pybreaker asks and tells about a source, for one call of one job. Whether it may call was decided here."""

    def __init__(self, source: Source, job: Job, settings: ScrapeSettings) -> None:
        super().__init__(source.id)
        self.error = ""
        self._settings = settings
        self._keys = {"source": source.id, "job": job.id, "fence": job.fence}
        self._streak = self._successes = 0
        self._verdict = True
        row = self._run(ENTER, probe=settings.probe_seconds)
        self._state, self.seconds, self.reason = row.state, row.seconds, row.reason or "breaker"

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note how the call ended. An attempt that was interrupted or lost says nothing about the source."""
        try:
            yield
        except BaseException as error:
            self.error = f"{type(error).__name__}: {error}"[:500]
            if not isinstance(error, Exception) or isinstance(error, NO_VERDICT):
                self._verdict = False
                self._run(LEAVE)
            raise

    @property
    def state(self) -> str:
        """As it was when the call was let in, or as this call made it."""
        return str(self._state)

    @state.setter
    def state(self, state: str) -> None:
        if state == STATE_OPEN:
            self._run(OPEN, seconds=self._settings.breaker_seconds)
            self.seconds, self.reason = self._settings.breaker_seconds, "breaker"
            count("breaker.opened")
        elif state == STATE_CLOSED and self._state == STATE_HALF_OPEN:
            self._run(CLOSE)
            count("breaker.closed")
        self._state = state

    @property
    def counter(self) -> int:
        """Failures in a row, this one included."""
        return self._streak

    def increment_counter(self) -> None:
        """Count this failure; one that finds the breaker open reaches the limit by that."""
        limit = self._settings.breaker_failures
        streak = self._run(FAILED, limit=limit, error=self.error)[0]
        self._streak = limit if streak is None else streak

    def reset_counter(self) -> None:
        """The call succeeded; that of a probe is told by closing."""
        if self._verdict and self._state == STATE_CLOSED:
            self._run(SUCCEEDED)

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

    def _run(self, statement: str, **values: Any) -> Any:
        for last in (False, False, True):
            try:
                with engine().begin() as connection:
                    return connection.execute(text(statement), {**self._keys, **values}).one()
            except OperationalError as error:
                if last or getattr(error.orig, "sqlstate", None) != DEADLOCK:
                    raise
        raise AssertionError("unreachable")
