"""Dead letters: failed jobs by cause; one as a canary, then the rest at a chosen rate; or given up, with a reason."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, model_validator
from sqlalchemy import Connection

from pipeline.front import dead_jobs
from pipeline.front.api.http.auth import Operator, Viewer
from pipeline.front.api.http.cursors import decode_cursor, plain_text, whole_number
from pipeline.front.api.http.fields import Name, Text
from pipeline.front.api.http.pages import Cursor, Limit, Page, cut
from pipeline.front.api.http.responses import problems
from pipeline.front.api.http.shorten import shorten
from pipeline.front.api.many import Words
from pipeline.front.api.models import JobRow
from pipeline.front.database import transaction
from pipeline.store.control import actions as control
from pipeline.store.gateway import client

router = APIRouter(prefix="/v1/dead", tags=["dead letters"])
READ = problems(401, 403, 422, 503)
CHANGE = problems(400, 401, 403, 409, 413, 422, 503)
GroupName = Annotated[str, Field(min_length=1, max_length=2000, description="`group` of GET /v1/dead")]


class Count(BaseModel):
    """Jobs of a group that failed in the hour that begins at ``at``."""

    at: datetime
    jobs: int


class Sample(BaseModel):
    """A job of the group. ``body`` is the beginning of its JSON."""

    id: UUID
    failed_at: datetime
    error: str | None
    body: str


class Group(BaseModel):
    """Failed jobs with the same cause."""

    group: str
    workflow: str
    phase: str
    cause: str = Field(description="kind of error, status, where it was raised, and what it said")
    jobs: int = Field(description="counted up to 10,000")
    first_at: datetime = Field(description="when its oldest job failed")
    last_at: datetime = Field(description="the last failure among its newest jobs")
    over_time: list[Count] = Field(description="by hour, of the newest 200; of fewer on pages of more than 25")
    samples: list[Sample]


class Choice(BaseModel):
    """Which failed jobs: ``ids``, or the oldest ``limit`` of a ``group``."""

    model_config = ConfigDict(extra="forbid")
    ids: Annotated[list[UUID], Field(min_length=1, max_length=1000)] | None = None
    group: GroupName | None = None
    limit: Annotated[int, Field(ge=1, le=dead_jobs.MOST, strict=True)] = 1000

    @model_validator(mode="after")
    def _one_way(self) -> Choice:
        if (self.ids is None) == (self.group is None):
            raise ValueError("give either ids or group")
        return self


class Replay(Choice):
    """With ``per_second`` the jobs start one after another at that rate, timed in PostgreSQL."""

    reason: Text | None = Field(default=None, description="why, for the audit")
    per_second: Annotated[float, Field(ge=0.01, le=10_000, allow_inf_nan=False)] | None = None


class Discard(Choice):
    """Given up: the jobs become cancelled and keep the reason."""

    reason: Text


class Done(BaseModel):
    """``more`` is true if the group has failed jobs left: send the request again."""

    jobs: int
    more: bool


@router.get("", responses=READ)
def groups(
    who: Viewer,  # noqa: ARG001  asked for, so that only viewers get in
    *,
    workflow: Annotated[Name | None, Query()] = None,
    sort: Annotated[dead_jobs.Sort, Query(description="the most jobs, the newest failures, or names first")] = "jobs",
    words: Annotated[Words | None, Query(description="a text in the cause, in any case")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[Group]:
    """Failed jobs grouped by cause, a thousand groups at most."""
    place = decode_cursor(cursor, whole_number, plain_text, plain_text, plain_text)
    with transaction() as connection:
        rows = dead_jobs.groups(connection, workflow, place, limit + 1, sort=sort, words=words)
    return Page[Group].model_validate(cut(rows, limit, lambda row: row["place"]))


@router.get("/jobs", responses=READ)
def jobs(
    who: Viewer,  # noqa: ARG001  asked for, so that only viewers get in
    group: Annotated[GroupName, Query()],
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[JobRow]:
    """The failed jobs of a group, newest first."""
    place = decode_cursor(cursor, UUID)
    with transaction() as connection:
        rows = dead_jobs.jobs_of_group(connection, dead_jobs.Group.named(group), place[0] if place else None, limit + 1)
    for row in rows:
        row["error_message"] = shorten(row["error_message"])
    return Page[JobRow].model_validate(cut(rows, limit, lambda row: str(row["id"])))


@router.post("/replay", status_code=202, responses=CHANGE)
def replay(who: Operator, wish: Replay) -> Done:
    """Start failed jobs again, with fresh budgets; those that are not failed any more are left alone."""
    detail = {"cause": _cause(wish), "per_second": wish.per_second}

    def act(connection: Connection, ids: list[UUID]) -> int:
        done = client.replay_many(connection, ids, wish.per_second)
        control.record(connection, who.actor, "replay", reason=wish.reason, jobs=done, ids=ids, detail=detail)
        return done

    return _apply(wish, act)


@router.post("/discard", responses=CHANGE)
def discard(who: Operator, wish: Discard) -> Done:
    """Take failed jobs off the dead letters."""

    def act(connection: Connection, ids: list[UUID]) -> int:
        done = client.discard_many(connection, ids, wish.reason)
        detail = {"cause": _cause(wish)}
        control.record(connection, who.actor, "discard", reason=wish.reason, jobs=done, ids=ids, detail=detail)
        return done

    return _apply(wish, act)


def _cause(wish: Choice) -> str | None:
    return None if wish.group is None else dead_jobs.Group.named(wish.group).cause


def _apply(wish: Choice, act: dead_jobs.Act) -> Done:
    with transaction() as connection:
        if wish.group is None:
            return Done(jobs=act(connection, list(dict.fromkeys(wish.ids or ()))), more=False)
        done, more = dead_jobs.of_group(connection, dead_jobs.Group.named(wish.group), wish.limit, act)
    return Done(jobs=done, more=more)
