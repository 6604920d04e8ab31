"""Rate limits: one rate and one pause for all jobs that use the same outside system, kept by all workers together."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from time import monotonic
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pipeline.declare.errors import Snooze
from pipeline.store import database
from pipeline.store.gateway import rate_limits, session
from pipeline.store.gateway.rate_limits import Lease

# A permit this near is slept for; one further away is waited for in PostgreSQL. The gate lets jobs through as early as
# that (pipeline.horizon). All in seconds.
HORIZON = 0.25
UNLIMITED = 1.0
# How long to leave a rate limit alone whose row another transaction holds, and what PostgreSQL says then.
BUSY = 0.5
LOCKED = "55P03"
# So many rate limits are kept in mind by a process.
MOST = 10_000
# How long a pause waits for that row, in milliseconds.
PATIENCE = 1000


def set_rate_limit(connection: Connection, name: str, rate: float | None, burst: float | None = None) -> None:
    """Let a rate limit have ``rate`` calls a second and a bucket of ``burst`` (by default one second's worth).

    >>> with engine().begin() as connection:
    ...     set_rate_limit(connection, "maps", rate=5, burst=20)
    """
    rate_limits.set_rate_limit(connection, name, rate, burst)


def pause_rate_limit(name: str, seconds: float, reason: str) -> None:
    """Hold the rate limit's jobs for so long, for every worker, from now on; a longer pause stands.

    >>> pause_rate_limit("maps", seconds=60, reason="their maintenance")

    In a transaction of its own. If an application holds the row, every worker finds out for itself.
    """
    try:
        with database.engine().begin() as connection:
            session.bound_lock_waits(connection, PATIENCE)
            rate_limits.pause_rate_limit(connection, name, seconds, reason)
    except DBAPIError as error:
        if not is_locked(error):
            raise


def is_locked(error: DBAPIError) -> bool:
    """Whether a row was not to be had in time, because an application holds it."""
    return getattr(error.orig, "sqlstate", None) == LOCKED


@dataclass
class Leased:
    """Permits of one rate limit that this process holds: when each begins, and when it is void."""

    permits: deque[tuple[float, float]] = field(default_factory=deque)
    unlimited_until: float = float("-inf")
    busy_until: float = float("-inf")
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, calls: int, now: float) -> float | None:
        """The seconds until so many calls may be made, or None when the lease does not cover them."""
        if now < self.unlimited_until:
            return 0.0
        while self.permits and self.permits[0][1] <= now:
            self.permits.popleft()
        if len(self.permits) < calls:
            return None
        begins = [self.permits.popleft()[0] for _ in range(calls)][-1]
        return max(begins - now, 0.0)


class Permits:
    """The leases of a process. One thread a rate limit asks PostgreSQL; the others take from what it brings."""

    def __init__(self, ask: Callable[[UUID, str, int], Lease]) -> None:
        self._ask = ask
        self._leases: dict[str, Leased] = {}
        self._lock = threading.Lock()

    def take(self, job_id: UUID, rate_limit: str, calls: int) -> float:
        """The seconds until the permit is valid. Raises Snooze when that is further away."""
        with self._lock:
            if len(self._leases) >= MOST and rate_limit not in self._leases:
                # Names that are made from bodies are without end. What is dropped is asked for anew.
                self._leases.clear()
            leased = self._leases.setdefault(rate_limit, Leased())
        with leased.lock:
            # A lease may be void by the time it arrives, if PostgreSQL was slow to answer: ask again then.
            while (pause := leased.take(calls, monotonic())) is None:
                self._lease(leased, job_id, rate_limit, calls)
        return pause

    def _lease(self, leased: Leased, job_id: UUID, rate_limit: str, calls: int) -> None:
        asked = monotonic()
        if asked < leased.busy_until:
            # Whoever was before us has waited for it already: not every thread of this process must.
            raise Snooze(BUSY, "rate_limit", f"rate limit {rate_limit} is held by another transaction")
        try:
            granted, first_in, spacing, grace, wait, reason = self._ask(job_id, rate_limit, calls)
        except DBAPIError as error:
            if not is_locked(error):
                raise
            leased.busy_until = monotonic() + BUSY
            raise Snooze(BUSY, "rate_limit", f"rate limit {rate_limit} is held by another transaction") from None
        now = monotonic()
        if granted is None:
            leased.unlimited_until = monotonic() + UNLIMITED
            return
        if granted == 0:
            raise Snooze(
                wait, reason or "rate_limit", f"rate limit {rate_limit}: next permit in {wait:.1f} s ({reason})"
            )
        # Never early, never late: it begins by the clock after the answer and ends by the one before the question.
        for place in range(granted):
            leased.permits.append((now + first_in + place * spacing, asked + first_in + place * spacing + grace))


def take_permit(job_id: UUID, rate_limit: str, calls: int) -> float:
    """See Job.limit: the caller sleeps for so many seconds, and then has it."""
    return _permits().take(job_id, rate_limit, calls)


@lru_cache(maxsize=1)
def _permits() -> Permits:
    return Permits(_from_postgres)


def _from_postgres(job_id: UUID, rate_limit: str, calls: int) -> Lease:
    with database.engine().begin() as connection:
        return rate_limits.take_permits(connection, rate_limit, job_id, calls, HORIZON)
