"""Who did what, when, why, to which jobs, from where."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from pipeline.front.api.http.auth import Viewer
from pipeline.front.api.http.cursors import decode_cursor, whole_number
from pipeline.front.api.http.pages import Cursor, Limit, Page, cut
from pipeline.front.api.http.responses import problems
from pipeline.front.database import transaction
from pipeline.store.control import actions as control
from pipeline.store.control.actions import Asked

router = APIRouter(prefix="/v1/audit", tags=["control"])
Words = Annotated[str, Query(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]


class Entry(BaseModel):
    """Something that somebody did through the API, the dashboard or the command line."""

    id: int
    at: datetime
    who: str = Field(description="the name of the token, or the user of the machine")
    door: str = Field(description="api, dashboard or command line")
    origin: str | None = Field(description="the address or the machine that it came from")
    action: str = Field(description="cancel, replay, discard, pause, resume, set, drain, signal, …")
    subject: str | None = Field(description="the phase, schedule or worker, if it was not done to jobs")
    reason: str | None
    jobs: int | None = Field(description="with how many jobs it was done")
    job_ids: list[UUID] = Field(description="the first five of them")
    detail: dict[str, Any] | None


@router.get("", responses=problems(401, 403, 422, 503))
def list_entries(
    who: Viewer,  # noqa: ARG001  the dependency is the check
    *,
    job: Annotated[UUID | None, Query(description="what was done to this job")] = None,
    by: Annotated[Words | None, Query(description="what this one did")] = None,
    action: Words | None = None,
    subject: Annotated[Words | None, Query(description="such as orders.charge, or worker ID")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[Entry]:
    """What was done, newest first. It is kept for PIPELINE_KEEP_AUDIT_DAYS."""
    place = decode_cursor(cursor, whole_number)
    with transaction() as connection:
        rows = control.audit(connection, Asked(job, by, action, subject), place[0] if place else None, limit + 1)
    return Page[Entry].model_validate(cut(rows, limit, lambda row: row["id"]))
