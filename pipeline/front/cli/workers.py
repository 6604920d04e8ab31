"""``pipeline workers``: which there are, and how they are."""

from __future__ import annotations

import json
from socket import gethostname
from typing import Annotated, Any

import typer
from rich.table import Table

from pipeline.declare.errors import BadInput
from pipeline.front.cli.console import Json, console
from pipeline.store import inspect

out = console()


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(workers)


def workers(
    as_json: Json = False,
    ready: Annotated[
        bool, typer.Option("--ready", help="Exit non-zero unless every worker on this host is alive and consuming.")
    ] = False,
) -> None:
    """Worker processes, living and recently gone."""
    rows = inspect.workers()
    if ready:
        _all_ready([row for row in rows if row["host"] == gethostname() and row["state"] not in ("stopped", "died")])
        return
    if as_json:
        print(json.dumps(rows, default=str))
        return
    table = Table("worker", "state", "threads", "running", "stuck", "heartbeat", "since")
    for row in rows:
        table.add_row(
            row["id"],
            row["state"],
            str(row["threads"]),
            str(row["running"]),
            str(row["stuck"] or ""),
            f"{row['age']:.0f} s ago",
            f"{row['started_at']:%F %T}",
        )
    out.print(table)


def _all_ready(rows: list[dict[str, Any]]) -> None:
    """For a container's health check: a worker that lives and hears nothing is no worker."""
    wrong = [
        f"{row['id']} is {row['state']}: {', '.join(row['not_consuming'])}" for row in rows if row["state"] != "alive"
    ]
    if not rows or wrong:
        raise BadInput(
            "; ".join(wrong) or f"no worker runs on {gethostname()}: start one with dramatiq pipeline.actors"
        )
    print(f"{len(rows)} ready")
