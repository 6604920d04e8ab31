"""Jobs by what is known of them: the same filter for lists, counts, and what is done with all that match."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy import Connection, text

from pipeline.declare.states import Status

FIND = text("""SELECT ids, floor FROM pipeline.find_jobs(:workflow, :phase, :status, :tag, CAST(:since AS timestamptz),
    CAST(:until AS timestamptz), :prefix, :error, :before, :limit)""")
CANCEL_MANY = text("SELECT pipeline.cancel_many(CAST(:ids AS uuid[]), :reason)")
NEWEST = UUID(int=2**128 - 1)

# Every state that is not final.
Unfinished = Literal["unfinished"]


@dataclass(frozen=True)
class Where:
    """Which jobs; what is None matches every one. ``prefix``: how the id begins; ``error``: a text in the error."""

    workflow: str | None = None
    phase: str | None = None
    status: Status | Unfinished | None = None
    tag: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    prefix: str | None = None
    error: str | None = None


def find(connection: Connection, where: Where, before: UUID | None, limit: int) -> tuple[list[UUID], UUID | None]:
    """Jobs that match, newest first, older than ``before``; and where the next look begins, if there may be more."""
    ids, floor = connection.execute(FIND, {**asdict(where), "before": before or NEWEST, "limit": limit}).one()
    return list(ids), ids[-1] if len(ids) == limit else floor


def cancel_many(connection: Connection, job_ids: list[UUID], reason: str) -> int:
    """How many of them had not ended and are cancelled now."""
    return int(connection.execute(CANCEL_MANY, {"ids": job_ids, "reason": reason}).scalar_one())
