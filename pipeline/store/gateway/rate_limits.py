"""Rate limits and pauses, kept by all workers together."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

TAKE_PERMITS = text(
    "SELECT granted, first_in, spacing, grace, wait, reason"
    " FROM pipeline.take_permits(:rate_limit, :job, :calls, :horizon)"
)
SET_RATE_LIMIT = text("SELECT pipeline.set_rate_limit(:name, :rate, :burst)")
PAUSE_RATE_LIMIT = text("SELECT pipeline.pause_rate_limit(:name, now() + make_interval(secs => :seconds), :reason)")
PAUSE_QUEUE = text("SELECT pipeline.pause(:queue, :seconds)")
# Python has no infinity: a pause that ends when somebody says so has no moment.
PAUSE_PHASES = text("""SELECT queue, nullif(paused_until, 'infinity') FROM pipeline.pause_phases(:workflow, :phase,
    coalesce(now() + make_interval(secs => CAST(:seconds AS double precision)), 'infinity')) ORDER BY queue""")
RESUME_PHASES = text("SELECT queue, was_paused FROM pipeline.resume_phases(:workflow, :phase) ORDER BY queue")


class Lease(NamedTuple):
    """Permits for calls: how many, when the first begins, how far apart they are, how long each is valid.

    ``granted`` is None if there is no limit, and 0 if the next permit is ``wait`` seconds away. All in seconds.
    """

    granted: int | None
    first_in: float
    spacing: float
    grace: float
    wait: float
    reason: str | None


class Paused(NamedTuple):
    """A phase that is paused, until then or until somebody resumes it."""

    queue: str
    paused_until: datetime | None


class Resumed(NamedTuple):
    """A phase that is not paused any more."""

    queue: str
    was_paused: bool


def take_permits(connection: Connection, rate_limit: str, job_id: UUID, calls: int, horizon: float) -> Lease:
    """Lease permits for so many calls at least, none of them further away than ``horizon``."""
    values = {"rate_limit": rate_limit, "job": job_id, "calls": calls, "horizon": horizon}
    return Lease._make(connection.execute(TAKE_PERMITS, values).one())


def set_rate_limit(connection: Connection, name: str, rate: float | None, burst: float | None) -> None:
    """So many calls a second, and a bucket of ``burst``."""
    connection.execute(SET_RATE_LIMIT, {"name": name, "rate": rate, "burst": burst})


def pause_rate_limit(connection: Connection, name: str, seconds: float, reason: str) -> None:
    """Hold the rate limit's jobs for so long from now on; a longer pause stands."""
    connection.execute(PAUSE_RATE_LIMIT, {"name": name, "seconds": seconds, "reason": reason})


def pause_queue(connection: Connection, queue: str, seconds: float) -> None:
    """Send nothing to the queue for so long from now on; a longer pause stands."""
    connection.execute(PAUSE_QUEUE, {"queue": queue, "seconds": seconds})


def pause_phases(connection: Connection, workflow: str, phase: str | None, seconds: float | None) -> list[Paused]:
    """Send nothing to a phase, or to all of a workflow, for so long or until resumed; a longer pause stands."""
    values = {"workflow": workflow, "phase": phase, "seconds": seconds}
    return [Paused._make(row) for row in connection.execute(PAUSE_PHASES, values)]


def resume_phases(connection: Connection, workflow: str, phase: str | None) -> list[Resumed]:
    """End every pause of a phase, or of all of a workflow."""
    values = {"workflow": workflow, "phase": phase}
    return [Resumed._make(row) for row in connection.execute(RESUME_PHASES, values)]
