"""``pipeline bulk``: what is done with many jobs in the background."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from pipeline.declare.errors import BadInput
from pipeline.front.cli.console import Json, console
from pipeline.front.database import transaction
from pipeline.front.whoami import actor
from pipeline.store.control import actions as control
from pipeline.store.control import bulk as actions

bulk = typer.Typer(no_args_is_help=True, help="What is done with many jobs in the background: list, pause, stop.")
Number = Annotated[int, typer.Argument(help="Its number; see: pipeline bulk list")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.add_typer(bulk, name="bulk")


@bulk.command("list")
def show(as_json: Json = False) -> None:
    """Those that have not ended, and those that ended within a day."""
    with transaction() as connection:
        found = actions.actions(connection)
    if as_json:
        print(json.dumps(found, default=str))
        return
    table = Table("", "begun", "by", "what", "to", "state", "done", "a second")
    for one in found:
        wanted = ", ".join(f"{name} {value}" for name, value in one["filter"].items())
        done = f"{one['done']} of {one['total']}" if one["job"] is None else str(one["job_status"])
        rate = "" if one["per_second"] is None else f"{one['per_second']:g}"
        row = (one["id"], f"{one['at']:%F %T}", one["who"], one["action"], wanted, one["state"], done, rate)
        table.add_row(*(escape(str(part)) for part in row))
    console().print(table)


@bulk.command("pause")
def pause(number: Number) -> None:
    """Do no more of it until it is resumed."""
    _steer(number, "pause", "paused")


@bulk.command("resume")
def resume(number: Number) -> None:
    """Go on with it."""
    _steer(number, "resume", "running")


@bulk.command("stop")
def stop(number: Number) -> None:
    """End it; what was done stays."""
    _steer(number, "stop", "stopped")


def _steer(number: int, what: str, state: actions.State) -> None:
    with transaction() as connection:
        if not actions.steer(connection, number, state):
            found = actions.state(connection, number)
            raise BadInput(
                f"bulk action {number} has ended: it is {found}" if found else f"there is no bulk action {number}"
            )
        control.record(connection, actor(), f"{what} bulk action", subject=f"bulk action {number}")
    print(f"{number} is {state}")
