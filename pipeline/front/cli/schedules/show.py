"""List the schedules."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from pipeline.declare.errors import BadInput
from pipeline.declare.schedules.schedule import moments_of
from pipeline.front.cli.console import Json, console
from pipeline.front.cli.workflows import check_phase
from pipeline.front.database import transaction
from pipeline.scheduling import schedules as listed
from pipeline.store.gateway.schedules import Schedule

MOST = 1000


def schedules(
    context: typer.Context,
    *,
    workflow: Annotated[str | None, typer.Option(help="Only schedules of this workflow.")] = None,
    moments: Annotated[int, typer.Option(min=1, max=20, help="How many of the next moments.")] = 1,
    as_json: Json = False,
) -> None:
    """List the schedules with their next moments."""
    if context.invoked_subcommand is not None:
        return
    found = _all(workflow)
    if as_json:
        print(json.dumps([{**asdict(one), "next": _next(one, moments)} for one in found], default=_as_text))
        return
    table = Table("schedule", "when", "next", "last", "overlap", "", title=f"{len(found)} schedules")
    for one in found:
        table.add_row(
            f"{one.workflow}.{one.name}",
            escape(when(one)),
            "\n".join(_next(one, moments)),
            "" if one.last_at is None else f"{one.last_at:%F %T %Z}",
            one.overlap,
            escape(_state(one)),
        )
    console().print(table)


def _all(workflow: str | None) -> list[Schedule]:
    found: list[Schedule] = []
    with transaction() as connection:
        check_phase(connection, workflow, None)
        while True:
            after = (found[-1].workflow, found[-1].name) if found else None
            page = listed(connection, workflow, after=after, most=MOST)
            found += page
            if len(page) < MOST:
                return found


def when(one: Schedule) -> str:
    """Its moments, for people."""
    return f"every {one.every}" if one.every is not None else f"{one.cron} {one.timezone}"


def _next(one: Schedule, most: int) -> list[str]:
    """The next one is PostgreSQL's; those behind it follow from it."""
    found: list[str] = []
    moment = one.next_at
    try:
        moments = moments_of(one.cron, one.every, one.timezone if one.cron else None)
        while moment is not None and len(found) < most:
            found.append(f"{moment:%F %T %Z}")
            moment = moments.after(moment)
    except BadInput:
        pass  # the row says so itself
    return found


def _state(one: Schedule) -> str:
    if one.problem:
        return one.problem
    told = [
        f"paused since {one.paused_at:%F %T %Z}" if one.paused_at else "",
        "waits for an earlier job" if one.waits else "",
        f"backfill until {one.backfill_until:%F %T %Z}" if one.backfill_until else "",
        "declared in code" if one.source == "code" else "",
    ]
    return ", ".join(filter(None, told))


def _as_text(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else str(value)
