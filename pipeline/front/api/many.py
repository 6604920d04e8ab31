"""Jobs by what is known of them, and what is done with all that match."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from pipeline.declare.states import Status
from pipeline.front import many
from pipeline.front.api.http.auth import Operator, Viewer
from pipeline.front.api.http.cursors import decode_cursor, encode_cursor
from pipeline.front.api.http.fields import Moment, Name, Tag, Text
from pipeline.front.api.http.pages import Cursor
from pipeline.front.api.http.responses import problems
from pipeline.front.database import transaction
from pipeline.store.gateway.client import Unfinished, Where

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
READ = problems(401, 403, 422, 503)
CHANGE = problems(400, 401, 403, 409, 413, 422, 503)
State = Status | Unfinished
Prefix = Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F-]{4,36}$")]
Words = Annotated[str, StringConstraints(min_length=2, max_length=200, pattern=r"^[^\x00]+$")]


class Wanted:
    """Which jobs, as a query says it."""

    def __init__(
        self,
        *,
        workflow: Annotated[Name | None, Query()] = None,
        phase: Annotated[Name | None, Query()] = None,
        status: Annotated[State | None, Query(description="a state, or unfinished")] = None,
        tag: Annotated[Tag | None, Query()] = None,
        since: Annotated[Moment | None, Query(description="submitted at this moment or later")] = None,
        until: Annotated[Moment | None, Query(description="submitted before this moment")] = None,
        id: Annotated[Prefix | None, Query(description="the beginning of the id")] = None,  # noqa: A002
        error: Annotated[Words | None, Query(description="a text in the error, in any case")] = None,
    ) -> None:
        self._where = Where(workflow, phase, status, tag, since, until, _hex(id), error)

    def where(self) -> Where:
        """For PostgreSQL."""
        return self._where


class Filter(BaseModel):
    """Which jobs; what is left out matches every one."""

    model_config = ConfigDict(extra="forbid")
    workflow: Name | None = None
    phase: Name | None = None
    status: State | None = Field(default=None, description="cancel: unfinished; replay: failed")
    tag: Tag | None = None
    since: Moment | None = None
    until: Moment | None = None
    id: Prefix | None = Field(default=None, description="the beginning of the id")
    error: Words | None = Field(default=None, description="a text in the error, in any case")

    def as_where(self) -> Where:
        """For PostgreSQL."""
        named = self.model_dump(exclude={"id"})
        return Where(**named, prefix=_hex(self.id))


class Many(BaseModel):
    """All jobs that match, a thousand a request: send it again with ``cursor`` until there is no ``next``."""

    model_config = ConfigDict(extra="forbid")
    where: Filter
    cursor: Annotated[str, Field(max_length=2000)] | None = None


class CancelMany(Many):
    """With a reason, which stays with the jobs."""

    reason: Text = "cancelled by request"


class ReplayMany(Many):
    """With a reason, for the audit."""

    reason: Text | None = None


class Some(BaseModel):
    """How many it was. ``next``: where to go on, null when all were looked at."""

    jobs: int
    next: str | None


@router.get("/count", responses=READ)
def count(who: Viewer, wanted: Annotated[Wanted, Depends()], cursor: Cursor = None) -> Some:  # noqa: ARG001
    """How many jobs match, of 10,000 or fewer a request; ``next`` says where to count on."""
    with transaction() as connection:
        found = many.count(connection, wanted.where(), _place(cursor))
    return _some(found)


@router.post("/cancel", responses=CHANGE)
def cancel(who: Operator, wish: CancelMany) -> Some:
    """Cancel jobs that match and have not ended. Nothing of running attempts is kept."""
    where = many.to_cancel(wish.where.as_where())
    return _do(wish, where, many.noted(many.cancel(wish.reason), who.actor, "cancel", where, wish.reason))


@router.post("/replay", status_code=202, responses=CHANGE)
def replay(who: Operator, wish: ReplayMany) -> Some:
    """Start jobs that match and are failed again, or cancelled ones, with fresh budgets."""
    where = many.to_replay(wish.where.as_where())
    return _do(wish, where, many.noted(many.replay, who.actor, "replay", where, wish.reason))


def _do(wish: Many, where: Where, act: many.Act) -> Some:
    with transaction() as connection:
        return _some(many.part(connection, where, _place(wish.cursor), act))


def _some(part: many.Part) -> Some:
    return Some(jobs=part.jobs, next=None if part.next is None else encode_cursor(str(part.next)))


def _place(cursor: str | None) -> UUID | None:
    place = decode_cursor(cursor, UUID)
    return place[0] if place else None


def _hex(prefix: str | None) -> str | None:
    return None if prefix is None else prefix.replace("-", "").lower()[:32] or None
