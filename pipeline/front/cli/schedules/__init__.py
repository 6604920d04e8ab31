"""``pipeline schedules``: what is submitted by itself, and when next."""

from __future__ import annotations

import typer

from pipeline.front.cli.jobs import bodies
from pipeline.front.cli.schedules import change, show

group = typer.Typer(help="Jobs that are submitted by themselves, at the moments of a calendar or an interval.")


def add_to(app: typer.Typer) -> None:
    """Register the commands. Without one, the schedules are listed."""
    group.callback(invoke_without_command=True)(show.schedules)
    group.command("add", cls=bodies.WithBody)(change.add)
    for command in (change.remove, change.pause, change.resume, change.run, change.backfill):
        group.command()(command)
    app.add_typer(group, name="schedules")
