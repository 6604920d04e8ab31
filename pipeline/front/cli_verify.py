"""``pipeline verify``: reconcile PostgreSQL with RabbitMQ."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from pipeline import settings
from pipeline.flow.verify import Finding
from pipeline.flow.verify import verify as examine
from pipeline.front.console import console

out = console()


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(verify)


def verify(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be mended.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Reconcile PostgreSQL with RabbitMQ and mend what does not add up; a second run finds nothing.

    Exit code 0: all is well, or was mended. 1: something is left to do.
    """
    found = examine(settings.get(), repair=not dry_run)
    if as_json:
        print(json.dumps([asdict(one) for one in found]))
    else:
        _show(found)
    raise typer.Exit(0 if all(one.repaired for one in found) else 1)


def _show(found: list[Finding]) -> None:
    if not found:
        out.print("PostgreSQL and RabbitMQ agree; nothing to mend")
        return
    table = Table("what", "which", "detail", "mended", title=f"{len(found)} findings")
    for one in found[:200]:
        table.add_row(one.problem, one.subject, one.detail, "yes" if one.repaired else "[red]no[/red]")
    out.print(table)
