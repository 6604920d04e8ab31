"""Schedules: what applications do with them, what is declared in code, and the steps of the leader of maintenance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import UUID

import orjson
from sqlalchemy import Connection, text

from pipeline.declare.schedules.schedule import Overlap, ScheduleSpec
from pipeline.store.gateway.callers import Call, Statement
from pipeline.store.gateway.client import as_array

if TYPE_CHECKING:
    from pipeline.store.engine import Wire

SCHEDULE = Statement(
    "SELECT pipeline.schedule(%s, %s, %s, make_interval(secs => %s::float8), %s, %s::jsonb, %s, %s::integer,"
    " make_interval(secs => %s::float8), %s::integer, %s::text[])"
)
UNSCHEDULE = Statement("SELECT pipeline.unschedule(%s, %s)")
PAUSE = Statement("SELECT pipeline.pause_schedule(%s, %s)")
RESUME = Statement("SELECT pipeline.resume_schedule(%s, %s)")
RUN = Statement("SELECT pipeline.run_schedule(%s, %s)")
BACKFILL = Statement("SELECT pipeline.backfill(%s, %s, %s::timestamptz, %s::timestamptz)")
LIST = Statement("SELECT to_jsonb(l)::text FROM pipeline.list_schedules(%s, %s, %s::text[], %s::integer) l")

DECLARE = text("SELECT pipeline.declare_schedules(:workflows, CAST(:schedules AS jsonb))")
IN_CODE = text("""
    SELECT workflow, name, cron, extract(epoch FROM every)::float8 AS every, timezone, body, overlap, catch_up,
        extract(epoch FROM catch_up_for)::float8 AS catch_up_for, priority, tags
    FROM pipeline.schedules WHERE source = 'code' AND workflow = ANY (:workflows) ORDER BY workflow, name""")

DUE = """SELECT id, revision, name, cron, every, timezone, overlap, catch_up, catch_up_for, next_at, planned, paused,
        backfill_at, backfill_until, at, seconds
    FROM pipeline.due_schedules(%s, %s::bigint[])"""
FIRE = "SELECT id, submitted, verdict FROM pipeline.fire_schedules(%s::jsonb)"

Verdict = Literal["fires", "skipped", "waits", "unknown", "moves"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule, and how it is.

    >>> schedule(None, "orders", "nightly", "@daily", overlap="skip")
    >>> [nightly] = schedules(None, "orders", "nightly")
    >>> nightly.cron, nightly.overlap, nightly.waits
    ('@daily', 'skip', False)

    ``next_at``: its next moment; None while it is paused, has none, or is so new that nobody has worked it out.
    ``waits``: the next moment is there, and waits for an earlier job to end. ``last_at``: the last moment that got a
    job. ``last_job``: the last job, also one beside the moments. ``problem``: why it has none.
    """

    workflow: str
    name: str
    source: Literal["code", "run time"]
    cron: str | None
    every: timedelta | None
    timezone: str
    body: dict[str, Any]
    priority: int
    tags: list[str]
    overlap: Overlap
    catch_up: int | timedelta
    next_at: datetime | None
    waits: bool
    backfill_at: datetime | None
    backfill_until: datetime | None
    paused_at: datetime | None
    last_at: datetime | None
    last_job: UUID | None
    problem: str | None


class Due(NamedTuple):
    """A schedule that has something to do, as it was read at ``at``. Without an id: nobody has, for so many seconds."""

    id: int | None
    revision: int
    name: str
    cron: str | None
    every: float | None
    timezone: str
    overlap: Overlap
    catch_up: int | None
    catch_up_for: float | None
    next_at: datetime | None
    planned: bool
    paused: bool
    backfill_at: datetime | None
    backfill_until: datetime | None
    at: datetime
    seconds: float | None


class Fired(NamedTuple):
    """A schedule that was moved on, and how many jobs it got."""

    id: int
    submitted: int
    verdict: Verdict


@dataclass(frozen=True)
class Wish:
    """What is to become of a schedule that was read at that revision, with ``expected`` as its next moment."""

    id: int
    revision: int
    expected: datetime | None
    moments: Sequence[datetime]
    next_at: datetime | None
    backfill_at: datetime | None
    fills: bool = False
    problem: str | None = None


def schedule(workflow: str, spec: ScheduleSpec) -> Call[None]:
    """Add a schedule at run time, or change the one of that name."""
    row = _row(workflow, spec)
    names = ("cron", "every", "timezone", "body", "overlap", "catch_up", "catch_up_for", "priority")
    values = (workflow, spec.name, *(None if row[name] is None else str(row[name]) for name in names))
    return Call(SCHEDULE, (*values, as_array(spec.tags)), lambda _: None)


def unschedule(workflow: str, name: str) -> Call[bool]:
    """False if there is none."""
    return Call(UNSCHEDULE, (workflow, name), _truth)


def pause(workflow: str, name: str) -> Call[bool]:
    """False if it is paused already."""
    return Call(PAUSE, (workflow, name), _truth)


def resume(workflow: str, name: str) -> Call[bool]:
    """False if it is not paused."""
    return Call(RESUME, (workflow, name), _truth)


def run_now(workflow: str, name: str) -> Call[UUID]:
    """A job beside those of the moments."""
    return Call(RUN, (workflow, name), lambda column: UUID(str(column[0])))


def backfill(workflow: str, name: str, first: datetime, last: datetime) -> Call[None]:
    """Ask for the jobs of the moments from ``first`` to ``last``."""
    return Call(BACKFILL, (workflow, name, first.isoformat(), last.isoformat()), lambda _: None)


def listed(workflow: str | None, name: str | None, after: tuple[str, str] | None, most: int) -> Call[list[Schedule]]:
    """In the order of their names."""
    place = None if after is None else as_array(after)
    return Call(
        LIST, (workflow, name, place, str(most)), lambda column: [_schedule(orjson.loads(row)) for row in column]
    )


def declare(connection: Connection, declared: Iterable[tuple[str, Sequence[ScheduleSpec]]]) -> None:
    """These workflows have exactly these schedules in code."""
    found = list(declared)
    rows = [{**_row(workflow, spec), "body": orjson.Fragment(spec.body)} for workflow, specs in found for spec in specs]
    values = {"workflows": [workflow for workflow, _ in found], "schedules": orjson.dumps(rows).decode()}
    connection.execute(DECLARE, values)


def in_code(connection: Connection, workflows: Sequence[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """By workflow and name, what is in force of the schedules that were declared in code."""
    found = connection.execute(IN_CODE, {"workflows": list(workflows)}).mappings()
    return {(row["workflow"], row["name"]): dict(row) for row in found}


def as_stored(workflow: str, spec: ScheduleSpec) -> dict[str, Any]:
    """The row of ``in_code`` that this would be."""
    return {**_row(workflow, spec), "body": orjson.loads(spec.body), "timezone": spec.timezone or "UTC"}


def due(connection: Wire, most: int, but: Sequence[int]) -> tuple[list[Due], float | None]:
    """So many at most that have something to do, and the seconds until another one has. None: there is none."""
    rows = [Due._make(row) for row in connection.execute(DUE, (most, list(but))).fetchall()]
    return [row for row in rows if row.id is not None], rows[-1].seconds


def fire(connection: Wire, wishes: Sequence[Wish]) -> list[Fired]:
    """Submit the jobs of these moments, and move their schedules on: those that nobody has changed and nobody holds."""
    return [Fired._make(row) for row in connection.execute(FIRE, (orjson.dumps(wishes).decode(),)).fetchall()]


def _row(workflow: str, spec: ScheduleSpec) -> dict[str, Any]:
    aged = isinstance(spec.catch_up, timedelta)
    return {
        "workflow": workflow,
        "name": spec.name,
        "cron": spec.cron,
        "every": None if spec.every is None else spec.every.total_seconds(),
        "timezone": spec.timezone,
        "body": spec.body,
        "overlap": spec.overlap,
        "catch_up": None if aged else spec.catch_up,
        "catch_up_for": spec.catch_up.total_seconds() if isinstance(spec.catch_up, timedelta) else None,
        "priority": spec.priority,
        "tags": list(spec.tags),
    }


def _schedule(row: dict[str, Any]) -> Schedule:
    aged, every = row.pop("catch_up_for"), row["every"]
    row["catch_up"] = row["catch_up"] if aged is None else timedelta(seconds=aged)
    row["every"] = None if every is None else timedelta(seconds=every)
    row["last_job"] = None if row["last_job"] is None else UUID(row["last_job"])
    for field in fields(Schedule):
        if field.name.endswith(("_at", "_until")) and row[field.name] is not None:
            row[field.name] = datetime.fromisoformat(row[field.name])
    return Schedule(**row)


def _truth(column: list[Any]) -> bool:
    return bool(column[0])
