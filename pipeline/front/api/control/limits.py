"""Limits that jobs share by name: their rates, pauses and breakers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pipeline.declare.waits.limits import per_second
from pipeline.front.api.http.auth import Operator, Viewer
from pipeline.front.api.http.fields import Seconds, Text
from pipeline.front.api.http.pages import Limit
from pipeline.front.api.http.problem import not_found
from pipeline.front.api.http.responses import problems
from pipeline.front.database import transaction
from pipeline.store.control import actions as control
from pipeline.store.limits import declared as store

router = APIRouter(prefix="/v1/limits", tags=["control"])
CHANGE = problems(400, 401, 403, 404, 409, 413, 422, 503)
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]+$", description="such as wikidata")]


def _is_rate(value: str) -> str:
    per_second(value)
    return value


Rate = Annotated[str, Field(max_length=40, description="such as 20/s, 100/min or 5/h"), AfterValidator(_is_rate)]


class RateLimit(BaseModel):
    """A rate limit, and the breaker of its name if there is one."""

    name: str
    rate: float | None = Field(description="calls a second; null: no rate, or its template's")
    burst: float | None
    declared_rate: float | None = Field(description="what the code says")
    rate_is_set: bool = Field(description="by an operator or an application, instead of what the code says")
    template: str | None = Field(description="whose rate it has, if its name is made from bodies")
    paused: bool
    paused_until: datetime | None = Field(description="null while paused: until it is resumed")
    pause_reason: str | None
    waiting: int = Field(description="jobs at the gate, counted up to 1,000")
    breaker: str | None = Field(description="closed, open or half-open")
    failures: int | None = Field(description="of the breaker, in a row")
    open_until: datetime | None
    last_error: str | None


class Which(BaseModel):
    """One limit."""

    model_config = ConfigDict(extra="forbid")
    name: Name
    reason: Text | None = Field(default=None, description="why, for the audit")


class Pause(Which):
    """For so long, or until somebody resumes it."""

    seconds: Seconds | None = None


class NewRate(Which):
    """Another rate than the code's; ``declared``: the code's again."""

    rate: Rate | None = Field(default=None, description="null: no rate")
    burst: Annotated[float, Field(ge=1, le=1e6, allow_inf_nan=False)] | None = None
    declared: bool = False


class Changed(BaseModel):
    """The limit, and whether it was paused before."""

    name: str
    was_paused: bool | None = None


@router.get("", responses=problems(401, 403, 422, 503))
def list_limits(
    who: Viewer,  # noqa: ARG001  the dependency is the check
    *,
    after: Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$", description="begin after this name")] = "",
    limit: Limit = 50,
) -> list[RateLimit]:
    """Rate limits and breakers in the order of their names."""
    with transaction() as connection:
        found = store.list_limits(connection, after, limit)
    return [RateLimit.model_validate(one._asdict()) for one in found]


@router.post("/set", responses=CHANGE)
def set_rate(who: Operator, wish: NewRate) -> Changed:
    """Set the rate of a limit at once. It stays so, also over deploys, until it is set back to ``declared``."""
    with transaction() as connection:
        if not wish.declared:
            rate = None if wish.rate is None else per_second(wish.rate)
            store.set_limit(connection, wish.name, rate, wish.burst)
        elif not store.unset_limit(connection, wish.name):
            raise not_found("limit", wish.name)
        detail = {"rate": "declared" if wish.declared else wish.rate}
        control.record(connection, who.actor, "set limit", subject=wish.name, reason=wish.reason, detail=detail)
    return Changed(name=wish.name)


@router.post("/pause", responses=CHANGE)
def pause(who: Operator, wish: Pause) -> Changed:
    """Hold its jobs at the gate; what runs goes on. A longer pause stands."""
    with transaction() as connection:
        store.pause_limit(connection, wish.name, wish.seconds)
        control.record(connection, who.actor, "pause limit", subject=wish.name, reason=wish.reason)
    return Changed(name=wish.name)


@router.post("/resume", responses=CHANGE)
def resume(who: Operator, wish: Which) -> Changed:
    """End a pause, also one that an outside system asked for. Of an open breaker: one job probes now."""
    with transaction() as connection:
        was_paused = store.resume_limit(connection, wish.name)
        control.record(connection, who.actor, "resume limit", subject=wish.name, reason=wish.reason)
    return Changed(name=wish.name, was_paused=was_paused)
