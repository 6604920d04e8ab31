"""Rate limits and pauses, kept by all workers together."""

from __future__ import annotations

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
