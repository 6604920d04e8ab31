"""``pipeline audit``: who did what, when, why, to which jobs, from where."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from pipeline.front.cli.console import Json, console
from pipeline.front.cli.jobs.commands import read_id
from pipeline.front.database import transaction
from pipeline.store.control import actions as control
from pipeline.store.control.actions import Asked


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(audit)


def audit(
    *,
    job: Annotated[str | None, typer.Option(help="What was done to this job.")] = None,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="What this one did.")] = None,
    action: Annotated[str | None, typer.Option(help="cancel, replay, discard, pause, resume, set, drain, …")] = None,
    subject: Annotated[str | None, typer.Option(help="A phase, a schedule or a worker.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 50,
    before: Annotated[int | None, typer.Option(metavar="NUMBER", help="The next page: before this entry.")] = None,
    as_json: Json = False,
) -> None:
    """What was done through the API, the dashboard and these commands, newest first."""
    asked = Asked(None if job is None else read_id(job), by, action, subject)
    with transaction() as connection:
        found = control.audit(connection, asked, before, limit)
    if as_json:
        print(json.dumps(found, default=str))
        return
    table = Table("", "when", "who", "from", "what", "to", "why")
    for one in found:
        origin = f"{one['door']} {one['origin'] or ''}".strip()
        table.add_row(*(escape(str(part)) for part in _row(one, origin)))
    console().print(table)
    if len(found) == limit:
        print(f"for older ones, add: --before {found[-1]['id']}")


def _row(one: dict[str, Any], origin: str) -> list[str]:
    detail = ", ".join(f"{name} {value}" for name, value in (one["detail"] or {}).items() if value is not None)
    what = f"{one['action']} {detail}".strip()
    return [str(one["id"]), f"{one['at']:%F %T}", one["who"], origin, what, _target(one), one["reason"] or ""]


def _target(one: dict[str, Any]) -> str:
    jobs = one["jobs"]
    if jobs is None:
        return one["subject"] or ""
    named = str(one["job_ids"][0]) if jobs == 1 and one["job_ids"] else f"{jobs} jobs"
    return f"{one['subject']}: {named}" if one["subject"] else named
