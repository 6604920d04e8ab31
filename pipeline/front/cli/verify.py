"""``pipeline verify`` and ``pipeline move``: what does not add up, and jobs whose phase is gone."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from pipeline import settings
from pipeline.front.cli.console import console
from pipeline.maintenance.move import move as jobs_on
from pipeline.maintenance.verify import Finding
from pipeline.maintenance.verify import verify as examine
from pipeline.store import database

out = console()


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command()(verify)
    app.command()(move)


def verify(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be repaired.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Reconcile PostgreSQL with RabbitMQ and repair what does not add up; a second run finds nothing.

    Exit code 0: all is well, or was repaired. 1: something is left to do.
    """
    found = examine(settings.get(), repair=not dry_run)
    if as_json:
        print(json.dumps([asdict(one) for one in found]))
    else:
        _show(found)
    raise typer.Exit(0 if all(one.repaired for one in found) else 1)


def move(
    queue: Annotated[str, typer.Argument(help="The phase that is gone, as WORKFLOW.PHASE.")],
    phase: Annotated[str, typer.Argument(help="The phase of the same workflow in which the jobs continue.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Move jobs that wait in a phase which their workflow no longer has to one that it has.

    Exit code 0: none is left. 1: some run or are locked by somebody; run it again later.
    """
    done = jobs_on(database.engine(), queue, phase)
    if as_json:
        print(json.dumps(asdict(done)))
    else:
        left = f"; left: {done.running} that run, {done.locked} that are locked" if done.running + done.locked else ""
        out.print(f"{done.moved} jobs moved from {queue} to {phase}{left}", highlight=False)
    raise typer.Exit(1 if done.running + done.locked else 0)


def _show(found: list[Finding]) -> None:
    if not found:
        out.print("PostgreSQL and RabbitMQ agree; nothing to repair")
        return
    table = Table("what", "which", "detail", "repaired", title=f"{len(found)} findings")
    for one in found[:200]:
        table.add_row(one.problem, one.subject, one.detail, "yes" if one.repaired else "[red]no[/red]")
    out.print(table)
