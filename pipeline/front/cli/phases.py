"""Commands about phases: pause and resume them, and set their pool and rate while jobs run."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from sqlalchemy import Connection

from pipeline.declare.errors import BadInput
from pipeline.declare.phase import read_rate
from pipeline.front.cli.console import Json
from pipeline.front.cli.times import seconds_of
from pipeline.front.cli.workflows import check_phase
from pipeline.front.database import transaction
from pipeline.front.whoami import actor
from pipeline.store.control import actions as control

Which = Annotated[
    str | None,
    typer.Argument(metavar="WORKFLOW[.PHASE]", help="A workflow, for all its phases, or one phase of it."),
]
Everything = Annotated[bool, typer.Option("--all", help="Every phase of every workflow.")]
For = Annotated[
    str | None, typer.Option("--for", metavar="TIME", help="How long, such as 30s, 10m, 2h or 1d; else until resumed.")
]
Why = Annotated[str | None, typer.Option("--reason", help="Why; see: pipeline audit.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    for command in (pause, resume):
        app.command()(command)
    app.command("set")(set_options)


def pause(
    which: Which = None, time: For = None, everything: Everything = False, reason: Why = None, as_json: Json = False
) -> None:
    """Send no jobs to a phase; they wait at no cost, and what runs finishes. A longer pause stands."""
    seconds = None if time is None else seconds_of("--for", time)
    workflow, phase = _chosen(which, everything)
    with transaction() as connection:
        check_phase(connection, workflow, phase)
        phases = control.pause_phases(connection, workflow, phase, seconds)
        detail = None if seconds is None else {"seconds": seconds}
        control.record(connection, actor(), "pause", subject=which or "everything", reason=reason, detail=detail)
    if as_json:
        print(json.dumps([phase._asdict() for phase in phases], default=str))
        return
    for one in phases:
        end = "until it is resumed" if one.paused_until is None else f"until {one.paused_until:%F %T %Z}"
        print(f"paused {one.queue} {end}; to end it: pipeline resume {one.queue}")


def resume(which: Which = None, everything: Everything = False, reason: Why = None, as_json: Json = False) -> None:
    """End the pause of a phase, also one that an outside system asked for; what waited is sent."""
    workflow, phase = _chosen(which, everything)
    with transaction() as connection:
        check_phase(connection, workflow, phase)
        phases = control.resume_phases(connection, workflow, phase)
        control.record(connection, actor(), "resume", subject=which or "everything", reason=reason)
    if as_json:
        print(json.dumps([phase._asdict() for phase in phases]))
        return
    for one in phases:
        print(f"resumed {one.queue}" if one.was_paused else f"{one.queue} was not paused")


def set_options(
    which: Annotated[str, typer.Argument(metavar="WORKFLOW.PHASE", help="A phase.")],
    pool: Annotated[
        str | None, typer.Option(metavar="NUMBER|none|declared", help="Jobs of it that may run at once.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="RATE|none|declared", help="Such as 20/s, 100/min or 5/h.")
    ] = None,
    reason: Why = None,
    as_json: Json = False,
) -> None:
    """Set pool or rate of a phase at once. It stays, also over deploys, until it is set to ``declared`` again."""
    workflow, phase = _chosen(which, everything=False)
    wanted = {name: value for name, value in (("pool", pool), ("rate", rate)) if value is not None}
    if phase is None or workflow is None or not wanted:
        raise BadInput("name one phase and what to set, such as: pipeline set orders.charge --pool 5 --rate 20/s")
    with transaction() as connection:
        check_phase(connection, workflow, phase)
        for option, value in wanted.items():
            SETTERS[option](connection, workflow, phase, value)
        control.record(connection, actor(), "set", subject=which, reason=reason, detail=wanted)
    if as_json:
        print(json.dumps({"queue": which, **wanted}))
        return
    for option, value in wanted.items():
        print(f"{option} of {which}: {'as declared' if value == 'declared' else value}")


def _set_pool(connection: Connection, workflow: str, phase: str, value: str) -> None:
    if value not in ("none", "declared") and not (value.isdigit() and 0 < int(value) <= 10_000):
        raise BadInput(f"--pool takes a number from 1 to 10000, none or declared, not {value!r}")
    number = int(value) if value.isdigit() else None
    control.set_pool(connection, workflow, phase, number, declared=value == "declared")


def _set_rate(connection: Connection, workflow: str, phase: str, value: str) -> None:
    try:
        rate = None if value in ("none", "declared") else read_rate(value)
    except ValueError as error:
        raise BadInput(f"--rate: {error}; or none, or declared") from None
    pair = None if rate is None else (rate.count, rate.seconds)
    control.set_rate(connection, workflow, phase, pair, declared=value == "declared")


SETTERS = {"pool": _set_pool, "rate": _set_rate}


def _chosen(which: str | None, everything: bool) -> tuple[str | None, str | None]:
    if (which is None) != everything:
        raise BadInput("name a workflow or a phase of one, or say --all")
    if which is None:
        return None, None
    workflow, _, phase = which.partition(".")
    return workflow, phase or None
