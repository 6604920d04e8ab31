"""Commands about phases: pause and resume."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from pipeline.front.cli.console import Json
from pipeline.front.cli.times import seconds_of
from pipeline.front.cli.workflows import check_phase
from pipeline.front.database import transaction
from pipeline.store.gateway import rate_limits

Which = Annotated[
    str,
    typer.Argument(metavar="WORKFLOW[.PHASE]", help="A workflow, for all its phases, or one phase of it."),
]
For = Annotated[
    str | None, typer.Option("--for", metavar="TIME", help="How long, such as 30s, 10m, 2h or 1d; else until resumed.")
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    for command in (pause, resume):
        app.command()(command)


def pause(which: Which, time: For = None, as_json: Json = False) -> None:
    """Send no jobs to a phase; they wait at no cost, and what runs finishes. A longer pause stands."""
    seconds = None if time is None else seconds_of("--for", time)
    with transaction() as connection:
        check_phase(connection, *_split(which))
        phases = rate_limits.pause_phases(connection, *_split(which), seconds)
    if as_json:
        print(json.dumps([phase._asdict() for phase in phases], default=str))
        return
    for phase in phases:
        end = "until it is resumed" if phase.paused_until is None else f"until {phase.paused_until:%F %T %Z}"
        print(f"paused {phase.queue} {end}; to end it: pipeline resume {phase.queue}")


def resume(which: Which, as_json: Json = False) -> None:
    """End the pause of a phase, also one that an outside system asked for; what waited is sent."""
    with transaction() as connection:
        check_phase(connection, *_split(which))
        phases = rate_limits.resume_phases(connection, *_split(which))
    if as_json:
        print(json.dumps([phase._asdict() for phase in phases]))
        return
    for phase in phases:
        print(f"resumed {phase.queue}" if phase.was_paused else f"{phase.queue} was not paused")


def _split(which: str) -> tuple[str, str | None]:
    workflow, _, phase = which.partition(".")
    return workflow, phase or None
