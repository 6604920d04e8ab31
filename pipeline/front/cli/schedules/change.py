"""Add, remove, pause, resume, run and backfill schedules."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from pipeline import scheduling
from pipeline.declare.errors import BadInput
from pipeline.declare.schedules.schedule import Overlap
from pipeline.front.cli.console import Json
from pipeline.front.cli.jobs import bodies
from pipeline.front.cli.times import seconds_of
from pipeline.front.cli.workflows import load_workflows
from pipeline.front.database import transaction
from pipeline.front.whoami import actor
from pipeline.store.control import actions as control

Which = Annotated[str, typer.Argument(metavar="WORKFLOW.NAME", help="A schedule, such as orders.weekly.")]


def add(
    workflow: Annotated[str, typer.Argument(help="For example: orders")],
    name: Annotated[str, typer.Argument(help="For example: weekly")],
    body: Annotated[
        list[str] | None,
        typer.Argument(help="A JSON object, - to read it from standard input, or words such as order=17 note=quick."),
    ] = None,
    *,
    cron: Annotated[str | None, typer.Option(help="Minute, hour, day, month and weekday, or @daily.")] = None,
    every: Annotated[str | None, typer.Option(metavar="TIME", help="An interval instead: 30s, 10m, 2h, 1d.")] = None,
    timezone: Annotated[str | None, typer.Option(help="For --cron, such as Europe/Paris; else UTC.")] = None,
    overlap: Annotated[Overlap, typer.Option(help="What to do while an earlier job has not ended.")] = "allow",
    catch_up: Annotated[
        str, typer.Option(metavar="NUMBER|TIME", help="How many missed moments are made up, or how old ones.")
    ] = "1",
    priority: Annotated[int, typer.Option(help="0 … 9; 9 goes first.")] = 0,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="A word to find its jobs by; repeatable.")] = None,
) -> None:
    """Add a schedule, or change the one of that name that was made at run time."""
    load_workflows()  # they say of what type the body is
    parsed = bodies.read(workflow, body or [])
    with transaction() as connection:
        scheduling.schedule(
            connection,
            workflow,
            name,
            cron,
            every=None if every is None else timedelta(seconds=seconds_of("--every", every)),
            timezone=timezone,
            body=parsed,
            overlap=overlap,
            catch_up=int(catch_up) if catch_up.isdigit() else timedelta(seconds=seconds_of("--catch-up", catch_up)),
            priority=priority,
            tags=tags or (),
        )
        detail = {"cron": cron, "every": every, "timezone": timezone, "overlap": overlap}
        control.record(connection, actor(), "schedule", subject=f"{workflow}.{name}", detail=detail)
    print(f"scheduled {workflow}.{name}; its next moments: pipeline schedules --workflow {workflow} --moments 5")


def remove(which: Which) -> None:
    """Remove a schedule that was made at run time; its jobs stay."""
    with transaction() as connection:
        done = scheduling.unschedule(connection, *_split(which))
        if done:
            control.record(connection, actor(), "unschedule", subject=which)
    if not done:
        raise BadInput(f"there is no schedule {which}; see: pipeline schedules")
    print(f"removed {which}")


def pause(which: Which) -> None:
    """Give its moments no jobs until it is resumed; they are not made up then."""
    with transaction() as connection:
        done = scheduling.pause_schedule(connection, *_split(which))
        if done:
            control.record(connection, actor(), "pause schedule", subject=which)
    end = f"to end it: pipeline schedules resume {which}"
    print(f"paused {which}; {end}" if done else f"{which} was paused already; {end}")


def resume(which: Which) -> None:
    """End the pause of a schedule: its moments count from now on."""
    with transaction() as connection:
        done = scheduling.resume_schedule(connection, *_split(which))
        if done:
            control.record(connection, actor(), "resume schedule", subject=which)
    print(f"resumed {which}" if done else f"{which} was not paused")


def run(which: Which, as_json: Json = False) -> None:
    """Submit a job of a schedule now, beside those of its moments, and print its id."""
    with transaction() as connection:
        job = scheduling.run_schedule(connection, *_split(which))
        control.record(connection, actor(), "run schedule", subject=which, jobs=1, ids=[job])
    print(json.dumps({"id": str(job)}) if as_json else job)


def backfill(
    which: Which,
    first: Annotated[str, typer.Option("--from", metavar="MOMENT", help="Such as 2026-01-31 or 2026-01-31T07:00:00Z.")],
    last: Annotated[str, typer.Option("--until", metavar="MOMENT", help="The same; included.")],
) -> None:
    """Give past moments a job each, unless they have one. Without a time zone they are in UTC."""
    with transaction() as connection:
        scheduling.backfill(connection, *_split(which), _moment("--from", first), _moment("--until", last))
        control.record(connection, actor(), "backfill", subject=which, detail={"first": first, "until": last})
    workflow, name = _split(which)
    print(f"asked for; its jobs: pipeline jobs --workflow {workflow} --tag schedule:{name}")


def _split(which: str) -> tuple[str, str]:
    workflow, dot, name = which.partition(".")
    if not dot or not name:
        raise BadInput(f"{which!r} names no schedule: write WORKFLOW.NAME, such as orders.weekly")
    return workflow, name


def _moment(option: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"{option} takes a moment such as 2026-01-31T07:00:00Z, not {text!r}") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
