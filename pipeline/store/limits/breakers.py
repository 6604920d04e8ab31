"""Circuit breakers, seen by all workers: each call is a short transaction."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

ENTER = text("SELECT state, seconds FROM pipeline.breaker_enter(:name, :job, :probe)")
FAILED = text("SELECT pipeline.breaker_failed(:name, :job, :fence, :most, :error)")
SUCCEEDED = text("SELECT pipeline.breaker_succeeded(:name)")
OPEN = text("SELECT pipeline.breaker_open(:name, :job, :seconds)")
CLOSE = text("SELECT pipeline.breaker_close(:name, :job)")
LEAVE = text("SELECT pipeline.breaker_leave(:name, :job)")


class Entered(NamedTuple):
    """'closed', 'half-open' (this job probes) or 'open', for so many seconds."""

    state: str
    seconds: float


def enter(connection: Connection, name: str, job: UUID, probe: float) -> Entered:
    """Whether the job may call now."""
    return Entered._make(connection.execute(ENTER, {"name": name, "job": job, "probe": probe}).one())


def failed(connection: Connection, name: str, job: UUID, fence: int, *, most: int, error: str) -> int | None:
    """The failures in a row; None if it is open already."""
    values: dict[str, Any] = {"name": name, "job": job, "fence": fence, "most": most, "error": error}
    count = connection.execute(FAILED, values).scalar_one()
    return None if count is None else int(count)


def succeeded(connection: Connection, name: str) -> None:
    """The next failure is the first again."""
    connection.execute(SUCCEEDED, {"name": name})


def open_breaker(connection: Connection, name: str, job: UUID, seconds: float) -> None:
    """Let nobody through for so long."""
    connection.execute(OPEN, {"name": name, "job": job, "seconds": seconds})


def close(connection: Connection, name: str, job: UUID) -> None:
    """The probe succeeded."""
    connection.execute(CLOSE, {"name": name, "job": job})


def leave(connection: Connection, name: str, job: UUID) -> None:
    """The probe says nothing: another job may."""
    connection.execute(LEAVE, {"name": name, "job": job})
