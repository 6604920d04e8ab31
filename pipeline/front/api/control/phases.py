"""Phases: pause and resume them, and set their pool and rate while jobs run."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from sqlalchemy import Connection

from pipeline.declare.phase import read_rate
from pipeline.front.api.http.auth import Operator
from pipeline.front.api.http.fields import Name, Seconds, Text
from pipeline.front.api.http.problem import Problem, not_found
from pipeline.front.api.http.responses import problems
from pipeline.front.database import transaction
from pipeline.store.control import actions as control

router = APIRouter(prefix="/v1/phases", tags=["control"])
CHANGE = problems(400, 401, 403, 404, 409, 413, 422, 503)
LARGEST_POOL = 10_000


def _is_rate(value: str) -> str:
    read_rate(value)
    return value


Rate = Annotated[str, Field(max_length=40, description="such as 20/s, 100/min or 5/h"), AfterValidator(_is_rate)]


class Which(BaseModel):
    """One phase; all phases of a workflow, without ``phase``; every phase there is, without either."""

    model_config = ConfigDict(extra="forbid")
    workflow: Name | None = None
    phase: Name | None = None
    reason: Text | None = Field(default=None, description="why, for the audit")

    @model_validator(mode="after")
    def _in_a_workflow(self) -> Which:
        if self.phase is not None and self.workflow is None:
            raise ValueError("a phase is one of a workflow: give that as well")
        return self

    @property
    def name(self) -> str:
        """For people, and for the audit."""
        return ".".join(part for part in (self.workflow, self.phase) if part) or "everything"


class Pause(Which):
    """For so long, or until somebody resumes it."""

    seconds: Seconds | None = None


class PausedPhase(BaseModel):
    """A phase that is paused; without a moment: until somebody resumes it."""

    queue: str
    paused_until: datetime | None


class ResumedPhase(BaseModel):
    """A phase that is not paused any more."""

    queue: str
    was_paused: bool


class Options(BaseModel):
    """What is to be in force instead of what the code declares. What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid")
    workflow: Name
    phase: Name
    pool: Annotated[int, Field(ge=1, le=LARGEST_POOL, strict=True)] | None = Field(
        default=None, description="jobs of the phase that may run at once; null: no limit"
    )
    rate: Rate | None = Field(default=None, description="messages that are sent in a time; null: no limit")
    declared: list[Literal["pool", "rate"]] = Field(
        default_factory=list, description="what is to be as the code declares it again"
    )
    reason: Text | None = Field(default=None, description="why, for the audit")


class Set(BaseModel):
    """What was changed."""

    queue: str
    changed: list[str]


@router.post("/pause", responses=CHANGE)
def pause(who: Operator, wish: Pause) -> list[PausedPhase]:
    """Send no jobs to these phases; they wait at no cost, and what runs finishes. A longer pause stands."""
    with transaction() as connection:
        found = control.pause_phases(connection, wish.workflow, wish.phase, wish.seconds)
        _must_exist(found, wish)
        detail = None if wish.seconds is None else {"seconds": wish.seconds}
        control.record(connection, who.actor, "pause", subject=wish.name, reason=wish.reason, detail=detail)
    return [PausedPhase.model_validate(one._asdict()) for one in found]


@router.post("/resume", responses=CHANGE)
def resume(who: Operator, wish: Which) -> list[ResumedPhase]:
    """End every pause of these phases, also one that an outside system asked for; what waited is sent."""
    with transaction() as connection:
        found = control.resume_phases(connection, wish.workflow, wish.phase)
        _must_exist(found, wish)
        control.record(connection, who.actor, "resume", subject=wish.name, reason=wish.reason)
    return [ResumedPhase.model_validate(one._asdict()) for one in found]


@router.post("/set", responses=CHANGE)
def set_options(who: Operator, wish: Options) -> Set:
    """Set pool or rate of a phase at once. It stays so, also over deploys, until it is set back to ``declared``."""
    named: list[str] = [option for option in ("pool", "rate") if option in wish.model_fields_set | set(wish.declared)]
    if not named:
        raise Problem(422, "Not valid", "say what is to change: pool, rate or declared")
    with transaction() as connection:
        changed = [_set(connection, wish, option) for option in named]
        if not all(changed):
            raise not_found("phase", f"{wish.workflow}.{wish.phase}")
        detail = {name: _said(wish, name) for name in named}
        subject = f"{wish.workflow}.{wish.phase}"
        control.record(connection, who.actor, "set", subject=subject, reason=wish.reason, detail=detail)
    return Set(queue=subject, changed=named)


def _set(connection: Connection, wish: Options, option: str) -> bool:
    declared = option in wish.declared
    if option == "pool":
        return control.set_pool(connection, wish.workflow, wish.phase, wish.pool, declared=declared)
    rate = read_rate(wish.rate)
    pair = None if rate is None else (rate.count, rate.seconds)
    return control.set_rate(connection, wish.workflow, wish.phase, pair, declared=declared)


def _must_exist(found: object, wish: Which) -> None:
    if not found:
        raise not_found("workflow or phase", wish.name)


def _said(wish: Options, option: str) -> object:
    return "as declared" if option in wish.declared else getattr(wish, option)
