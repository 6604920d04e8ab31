"""Lanes: one rate and one pause for all jobs that use the same outside system, kept by all workers together."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from time import monotonic, sleep
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from pipeline.flow import database
from pipeline.rules.errors import Wait

# A turn this near is slept for; one further away is waited for in PostgreSQL. The gate lets jobs through as early as
# that (pipeline_horizon). All in seconds.
HORIZON = 0.25
UNLIMITED = 1.0
# How long to leave a lane alone whose row another transaction holds, and what PostgreSQL says then.
BUSY = 0.5
LOCKED = "55P03"
TURN = text("SELECT granted, first_in, spacing, grace, wait, reason FROM pipeline_turn(:lane, :job, :calls, :horizon)")


def set_lane(connection: Connection, name: str, rate: float | None, burst: float | None = None) -> None:
    """Let a lane have ``rate`` calls a second and a bucket of ``burst`` (by default one second's worth)."""
    values = {"name": name, "rate": rate, "burst": burst}
    connection.execute(text("SELECT pipeline_set_lane(:name, :rate, :burst)"), values)


def pause_lane(connection: Connection, name: str, seconds: float, reason: str) -> None:
    """Hold the lane's jobs for so long, for every worker; a longer pause stands."""
    values = {"name": name, "seconds": seconds, "reason": reason}
    connection.execute(
        text("SELECT pipeline_pause_lane(:name, now() + make_interval(secs => :seconds), :reason)"), values
    )


def open_lane(connection: Connection, name: str) -> None:
    """End the lane's pause; its jobs go out at its rate."""
    connection.execute(text("SELECT pipeline_open_lane(:name)"), {"name": name})


def rest_lane(name: str, seconds: float, reason: str) -> None:
    """Pause the lane now, in a transaction of its own. If its row is held, everybody finds out for himself."""
    try:
        with database.engine().begin() as connection:
            connection.execute(text("SET LOCAL lock_timeout = '1s'"))
            pause_lane(connection, name, seconds, reason)
    except DBAPIError as error:
        if not is_locked(error):
            raise


def is_locked(error: DBAPIError) -> bool:
    """Whether a row was not to be had in time, because an application holds it."""
    return getattr(error.orig, "sqlstate", None) == LOCKED


@dataclass
class Leased:
    """Turns of one lane that this process holds: when each begins, and when it is void."""

    turns: deque[tuple[float, float]] = field(default_factory=deque)
    unlimited_until: float = float("-inf")
    busy_until: float = float("-inf")
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, calls: int, now: float) -> float | None:
        """The seconds until so many calls may be made, or None when the lease does not cover them."""
        if now < self.unlimited_until:
            return 0.0
        while self.turns and self.turns[0][1] <= now:
            self.turns.popleft()
        if len(self.turns) < calls:
            return None
        begins = [self.turns.popleft()[0] for _ in range(calls)][-1]
        return max(begins - now, 0.0)


class Turns:
    """The leases of a process. One thread a lane asks PostgreSQL; the others take from what it brings."""

    def __init__(self, ask: Callable[[UUID, str, int], Any]) -> None:
        self._ask = ask
        self._leases: dict[str, Leased] = {}
        self._lock = threading.Lock()

    def take(self, job_id: UUID, lane: str, calls: int) -> None:
        """Sleep until the turn, or raise Wait when it is further away."""
        with self._lock:
            leased = self._leases.setdefault(lane, Leased())
        with leased.lock:
            # A lease may be void by the time it arrives, if PostgreSQL was slow to answer: ask again then.
            while (pause := leased.take(calls, monotonic())) is None:
                self._lease(leased, job_id, lane, calls)
        if pause > 0:
            sleep(pause)

    def _lease(self, leased: Leased, job_id: UUID, lane: str, calls: int) -> None:
        asked = monotonic()
        if asked < leased.busy_until:
            # Whoever was before us has waited for it already: not every thread of this process must.
            raise Wait(BUSY, "rate_limit", f"lane {lane} is held by another transaction")
        try:
            granted, first_in, spacing, grace, wait, reason = self._ask(job_id, lane, calls)
        except DBAPIError as error:
            if not is_locked(error):
                raise
            leased.busy_until = monotonic() + BUSY
            raise Wait(BUSY, "rate_limit", f"lane {lane} is held by another transaction") from None
        now = monotonic()
        if granted is None:
            leased.unlimited_until = monotonic() + UNLIMITED
            return
        if granted == 0:
            raise Wait(wait, reason or "rate_limit", f"lane {lane}: next turn in {wait:.1f} s ({reason})")
        # Never early, never late: it begins by the clock after the answer and ends by the one before the question.
        for place in range(granted):
            leased.turns.append((now + first_in + place * spacing, asked + first_in + place * spacing + grace))


def take_turn(job_id: UUID, lane: str, calls: int) -> None:
    """See Job.turn."""
    _turns().take(job_id, lane, calls)


@lru_cache(maxsize=1)
def _turns() -> Turns:
    return Turns(_from_postgres)


def _from_postgres(job_id: UUID, lane: str, calls: int) -> Any:
    values = {"lane": lane, "job": job_id, "calls": calls, "horizon": HORIZON}
    with database.engine().begin() as connection:
        return connection.execute(TURN, values).one()
