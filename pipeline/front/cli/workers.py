"""``pipeline workers`` and ``drain``: which there are and how they are, and letting one take nothing new."""

from __future__ import annotations

import json
from socket import gethostname
from time import monotonic, sleep
from typing import Annotated, Any

import typer
from rich.table import Table

from pipeline.declare.errors import BadInput
from pipeline.front.cli.console import Json, console
from pipeline.front.cli.times import seconds_of
from pipeline.front.database import transaction
from pipeline.front.whoami import actor
from pipeline.store import inspect
from pipeline.store.control import actions as control

out = console()
# One that drains is well: nobody should restart it.
READY = ("alive", "draining")


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command()(workers)
    app.command()(drain)


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
    table = Table("worker", "state", "threads", "running", "stuck", "memory", "version", "heartbeat", "since")
    for row in rows:
        table.add_row(
            row["id"],
            row["state"],
            str(row["threads"]),
            str(row["running"]),
            str(row["stuck"] or ""),
            "" if row["memory"] is None else f"{row['memory'] / 2**20:.0f} MiB",
            row["version"],
            f"{row['age']:.0f} s ago",
            f"{row['started_at']:%F %T}",
        )
    out.print(table)


def drain(
    worker: Annotated[str, typer.Argument(help="A worker's id; see: pipeline workers")],
    undo: Annotated[bool, typer.Option("--undo", help="Let it take jobs again.")] = False,
    wait: Annotated[
        str | None,
        typer.Option("--wait", metavar="TIME", help="Wait until it runs nothing, at most so long."),
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Why; see: pipeline audit.")] = None,
    as_json: Json = False,
) -> None:
    """Let a worker take nothing new; it finishes what it has and stays until it is stopped, or resumed.

    Exit code 1: with --wait, it still runs jobs.
    """
    with transaction() as connection:
        if not control.drain(connection, worker, wanted=not undo):
            raise BadInput(f"no worker {worker!r} is alive; see: pipeline workers")
        action = "resume" if undo else "drain"
        control.record(connection, actor(), action, subject=f"worker {worker}", reason=reason)
    running = _running(worker, 0 if wait is None or undo else seconds_of("--wait", wait))
    if as_json:
        print(json.dumps({"worker": worker, "draining": not undo, "running": running}))
    elif undo:
        print(f"{worker} takes jobs again")
    else:
        print(f"{worker} is draining; {running} jobs run")
    raise typer.Exit(1 if wait is not None and not undo and running else 0)


def _running(worker: str, seconds: float) -> int:
    """How many jobs it runs; as soon as it runs none, or after so long."""
    deadline = monotonic() + seconds
    while True:
        with transaction() as connection:
            running = len(inspect.jobs_of_worker(connection, worker))
        if not running or monotonic() >= deadline:
            return running
        sleep(min(0.5, max(0.0, deadline - monotonic())))


def _all_ready(rows: list[dict[str, Any]]) -> None:
    """For a container's health check: a worker that lives and hears nothing is no worker."""
    wrong = [
        f"{row['id']} is {row['state']}: {', '.join(row['not_consuming'])}" for row in rows if row["state"] not in READY
    ]
    if not rows or wrong:
        raise BadInput(
            "; ".join(wrong) or f"no worker runs on {gethostname()}: start one with dramatiq pipeline.actors"
        )
    print(f"{len(rows)} ready")
