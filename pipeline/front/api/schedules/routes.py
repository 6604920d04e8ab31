"""Schedules: list, look at, put, delete, pause, resume, run now, backfill."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from sqlalchemy import Connection

from pipeline import scheduling
from pipeline.declare.schedules.schedule import moments_of
from pipeline.front.api.http.auth import Operator, Viewer
from pipeline.front.api.http.cursors import decode_cursor, plain_text
from pipeline.front.api.http.fields import Name, typed
from pipeline.front.api.http.pages import Cursor, Limit, Page, cut
from pipeline.front.api.http.problem import Problem, not_found
from pipeline.front.api.http.responses import problems
from pipeline.front.api.models import Accepted
from pipeline.front.api.schedules.models import (
    Backfill,
    NewSchedule,
    ScheduleDetail,
    ScheduleName,
    ScheduleRow,
    Steered,
)
from pipeline.front.database import transaction
from pipeline.store.control import actions as control
from pipeline.store.gateway.schedules import Schedule

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])
READ = problems(401, 403, 422, 503)
ONE = problems(401, 403, 404, 422, 503)
CHANGE = problems(400, 401, 403, 404, 409, 413, 422, 503)
# Moments of a schedule that are still to come.
SHOWN = 8
InPath = Annotated[Name, Path(description="its workflow")]
Called = Annotated[ScheduleName, Path(description="its name")]


@router.get("", responses=READ)
def list_schedules(
    who: Viewer,  # noqa: ARG001  the dependency is the check
    *,
    workflow: Annotated[Name | None, Query()] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[ScheduleRow]:
    """Schedules, in the order of their names."""
    place = decode_cursor(cursor, plain_text, plain_text)
    after = None if place is None else (place[0], place[1])
    with transaction() as connection:
        found = scheduling.schedules(connection, workflow, after=after, most=limit + 1)
    rows = [ScheduleRow.of(one) for one in found]
    return Page[ScheduleRow].model_validate(cut(rows, limit, lambda row: (row.workflow, row.name)))


@router.get("/{workflow}/{name}", responses=ONE)
def show_schedule(who: Viewer, workflow: InPath, name: Called) -> ScheduleDetail:  # noqa: ARG001
    """One schedule, and its next moments."""
    with transaction() as connection:
        found = scheduling.schedules(connection, workflow, name)
    if not found:
        raise _unknown(workflow, name)
    row = ScheduleRow.of(found[0])
    return ScheduleDetail.model_validate({**row.model_dump(), "moments": _next_moments(found[0])})


def _next_moments(one: Schedule) -> list[datetime]:
    """None of one that is paused, or that nobody has worked out yet."""
    moments: list[datetime] = []
    if one.next_at is None:
        return moments
    endless = moments_of(one.cron, one.every, one.timezone if one.cron else None)
    following: datetime | None = one.next_at
    while following is not None and len(moments) < SHOWN:
        moments.append(following)
        following = endless.after(following)
    return moments


@router.put("/{workflow}/{name}", responses=CHANGE)
def put_schedule(who: Operator, workflow: InPath, name: Called, wish: NewSchedule) -> ScheduleRow:
    """Add a schedule, or change the one of that name. One that is declared in code is refused: it is changed there."""
    if wish.catch_up is not None and wish.catch_up_for is not None:
        raise Problem(422, "Not valid", "give either catch_up or catch_up_for")
    body = typed(workflow, wish.body)
    said = wish.model_dump(mode="json", include={"cron", "every", "timezone", "overlap"}, exclude_none=True)
    with transaction() as connection:
        scheduling.schedule(
            connection,
            workflow,
            name,
            wish.cron,
            every=None if wish.every is None else timedelta(seconds=wish.every),
            timezone=wish.timezone,
            body=body,
            overlap=wish.overlap,
            catch_up=wish.made_up(),
            priority=wish.priority,
            tags=wish.tags,
        )
        [found] = scheduling.schedules(connection, workflow, name)
        control.record(connection, who.actor, "schedule", subject=f"{workflow}.{name}", detail=said)
    return ScheduleRow.of(found)


@router.delete("/{workflow}/{name}", status_code=204, responses=CHANGE)
def delete_schedule(who: Operator, workflow: InPath, name: Called) -> Response:
    """Remove a schedule that was made at run time; its jobs stay."""
    with transaction() as connection:
        if not scheduling.unschedule(connection, workflow, name):
            raise _unknown(workflow, name)
        control.record(connection, who.actor, "unschedule", subject=f"{workflow}.{name}")
    return Response(status_code=204)


@router.post("/{workflow}/{name}/pause", responses=CHANGE)
def pause_schedule(who: Operator, workflow: InPath, name: Called) -> Steered:
    """Give its moments no jobs until it is resumed; they are not made up then."""
    return _steer(who, workflow, name, pause=True)


@router.post("/{workflow}/{name}/resume", responses=CHANGE)
def resume_schedule(who: Operator, workflow: InPath, name: Called) -> Steered:
    """End the pause of a schedule: its moments count from now on."""
    return _steer(who, workflow, name, pause=False)


@router.post("/{workflow}/{name}/run", status_code=202, responses=CHANGE)
def run_schedule(who: Operator, workflow: InPath, name: Called, response: Response) -> Accepted:
    """Submit a job of a schedule now, beside those of its moments."""
    with transaction() as connection:
        _must_exist(connection, workflow, name)
        job = scheduling.run_schedule(connection, workflow, name)
        control.record(connection, who.actor, "run schedule", subject=f"{workflow}.{name}", jobs=1, ids=[job])
    response.headers["Location"] = f"/v1/jobs/{job}"
    return Accepted(id=job, status_url=f"/v1/jobs/{job}")


@router.post("/{workflow}/{name}/backfill", status_code=202, responses=CHANGE)
def backfill_schedule(who: Operator, workflow: InPath, name: Called, wish: Backfill) -> ScheduleRow:
    """Give past moments a job each, unless they have one; in the background."""
    with transaction() as connection:
        _must_exist(connection, workflow, name)
        scheduling.backfill(connection, workflow, name, wish.first, wish.until)
        [found] = scheduling.schedules(connection, workflow, name)
        detail = {"first": wish.first.isoformat(), "until": wish.until.isoformat()}
        control.record(connection, who.actor, "backfill", subject=f"{workflow}.{name}", detail=detail)
    return ScheduleRow.of(found)


def _steer(who: Operator, workflow: str, name: str, *, pause: bool) -> Steered:
    steer = scheduling.pause_schedule if pause else scheduling.resume_schedule
    with transaction() as connection:
        _must_exist(connection, workflow, name)
        changed = steer(connection, workflow, name)
        action = "pause schedule" if pause else "resume schedule"
        control.record(connection, who.actor, action, subject=f"{workflow}.{name}")
    return Steered(workflow=workflow, name=name, changed=changed)


def _must_exist(connection: Connection, workflow: str, name: str) -> None:
    """404 and not 422, which is for a wish that cannot be met."""
    if not scheduling.schedules(connection, workflow, name):
        raise _unknown(workflow, name)


def _unknown(workflow: str, name: str) -> Problem:
    return not_found("schedule", f"{workflow}.{name}")
