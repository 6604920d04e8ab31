"""What is done with many jobs in the background: seen by everybody, paused and stopped by any operator."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field, model_validator
from sqlalchemy import Connection

from pipeline.front import dead_jobs, many
from pipeline.front.api.http.auth import Operator, Viewer
from pipeline.front.api.http.fields import Text
from pipeline.front.api.http.problem import conflict, not_found
from pipeline.front.api.http.responses import problems
from pipeline.front.api.many import Filter
from pipeline.front.database import transaction
from pipeline.store.control import actions as control
from pipeline.store.control import bulk

router = APIRouter(prefix="/v1/bulk", tags=["control"])
CHANGE = problems(400, 401, 403, 404, 409, 413, 422, 503)
Number = Annotated[int, Path(ge=1, lt=2**63, description="the action's number")]
STATES: dict[str, bulk.State] = {"pause": "paused", "resume": "running", "stop": "stopped"}


class NewBulk(BaseModel):
    """What to do, and with which jobs: those that match ``where``, or a ``group`` of dead letters.

    With ``job`` that one job of the group is replayed as a canary.
    """

    model_config = ConfigDict(extra="forbid")
    action: Literal["replay", "discard", "cancel", "canary"]
    where: Filter | None = None
    group: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    job: UUID | None = None
    per_second: Annotated[float, Field(ge=0.01, le=10_000, allow_inf_nan=False)] | None = None
    reason: Text | None = None
    total: Annotated[int, Field(ge=1, lt=2**31, strict=True)] | None = Field(
        default=None, description="how many match, if the caller has counted them: the server counts up to 10,000"
    )

    @model_validator(mode="after")
    def _one_way(self) -> NewBulk:
        if (self.where is None) == (self.group is None):
            raise ValueError("give either where or group")
        if (self.action in ("discard", "canary")) > (self.group is not None):
            raise ValueError(f"{self.action} is for a group")
        if (self.action == "canary") != (self.job is not None):
            raise ValueError("a canary is one job of the group")
        if self.action == "cancel" and self.where is None:
            raise ValueError("cancel is for jobs that match where")
        return self


class BulkAction(BaseModel):
    """Something that is done with many jobs, or a canary."""

    id: int
    at: datetime
    who: str
    action: str
    state: str = Field(description="running, paused, stopped or done")
    filter: dict[str, Any]
    per_second: float | None
    reason: str | None
    total: int = Field(description="how many matched when it began; counted up to 10,000, unless the caller counted")
    done: int
    held: int = Field(description="somebody else holds their rows: they are tried again; counted up to 10,000")
    ended_at: datetime | None
    job: UUID | None = Field(description="the canary")
    job_status: str | None


class Begun(BaseModel):
    """Its number, and how many jobs match; counted up to 10,000."""

    id: int
    total: int


class Steered(BaseModel):
    """How it is now."""

    id: int
    state: str


@router.get("", responses=problems(401, 403, 422, 503))
def list_actions(who: Viewer) -> list[BulkAction]:  # noqa: ARG001
    """Those that have not ended, and those that ended within a day."""
    with transaction() as connection:
        return [BulkAction.model_validate(row) for row in bulk.actions(connection)]


@router.post("", status_code=202, responses=CHANGE)
def begin(who: Operator, wish: NewBulk) -> Begun:
    """Begin; the leader of maintenance does it, in parts, and at the rate if one is given."""
    with transaction() as connection:
        wanted, total = _wanted(connection, wish)
        number = bulk.begin(
            connection,
            who.actor,
            wish.action,
            wanted,
            total=total,
            per_second=wish.per_second,
            reason=wish.reason,
            job=wish.job,
        )
    if number is None:
        raise conflict(f"job {wish.job} is not failed any more")
    return Begun(id=number, total=total)


@router.post("/{number}/{what}", responses=CHANGE)
def steer(who: Operator, number: Number, what: Literal["pause", "resume", "stop"]) -> Steered:
    """Pause, resume or stop one that has not ended. What was done stays."""
    with transaction() as connection:
        done = bulk.steer(connection, number, STATES[what])
        state = bulk.state(connection, number)
        if done:
            control.record(connection, who.actor, f"{what} bulk action", subject=f"bulk action {number}")
    if state is None:
        raise not_found("bulk action", number)
    if not done:
        raise conflict(f"bulk action {number} has ended: it is {state}")
    return Steered(id=number, state=state)


def _wanted(connection: Connection, wish: NewBulk) -> tuple[dict[str, Any], int]:
    """The filter as PostgreSQL keeps it, and how many jobs match."""
    if wish.group is not None:
        group = dead_jobs.Group.named(wish.group)
        return group._asdict(), 1 if wish.job else dead_jobs.size(connection, group)
    assert wish.where is not None
    narrow = many.to_cancel if wish.action == "cancel" else many.to_replay
    where = narrow(wish.where.as_where())
    return many.described(where), wish.total or many.count(connection, where).jobs
