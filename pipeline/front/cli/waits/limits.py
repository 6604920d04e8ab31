"""``pipeline limits``: rate limits and breakers by name; set, pause and resume one."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from pipeline.declare.errors import BadInput
from pipeline.declare.waits.limits import per_second
from pipeline.front.cli.console import Json, console
from pipeline.front.cli.phases import For, Why
from pipeline.front.cli.times import seconds_of
from pipeline.front.database import transaction
from pipeline.front.whoami import actor
from pipeline.store.control import actions as control
from pipeline.store.limits import declared as store
from pipeline.store.limits.declared import LimitNow

limits = typer.Typer(no_args_is_help=True, help="Limits that jobs share by name: rates, pauses and breakers.")
Name = Annotated[str, typer.Argument(help="Its name, such as wikidata or shop:north.")]
MANY = 1000


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.add_typer(limits, name="limits")


@limits.command("list")
def show(
    after: Annotated[str, typer.Option("--after", metavar="NAME", help="Begin after this name.")] = "",
    most: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")] = 50,
    as_json: Json = False,
) -> None:
    """Rate limits and breakers in the order of their names."""
    with transaction() as connection:
        found = store.list_limits(connection, after, most)
    if as_json:
        print(json.dumps([one._asdict() for one in found], default=str))
        return
    table = Table("limit", "rate", "waiting", "paused", "breaker")
    for one in found:
        waiting = f"{one.waiting}" if one.waiting < MANY else f"{MANY:,} or more"
        table.add_row(one.name, _rate(one), waiting, _pause(one), one.breaker or "")
    console().print(table)
    if len(found) == most:
        print(f"there may be more: pipeline limits list --after {found[-1].name!r}")


@limits.command("set")
def set_rate(
    name: Name,
    rate: Annotated[str, typer.Argument(metavar="RATE|none|declared", help="Such as 20/s, 100/min or 5/h.")],
    burst: Annotated[
        float | None, typer.Option(min=1, max=1e6, help="Calls at once after a quiet time; else one second's worth.")
    ] = None,
    reason: Why = None,
) -> None:
    """Set the rate of a limit at once. It stays, also over deploys, until it is set to ``declared`` again."""
    try:
        number = None if rate in ("none", "declared") else per_second(rate)
    except ValueError as error:
        raise BadInput(f"{error}; or none, or declared") from None
    with transaction() as connection:
        if rate != "declared":
            store.set_limit(connection, name, number, burst)
        elif not store.unset_limit(connection, name):
            raise BadInput(f"there is no limit {name}; see: pipeline limits list")
        control.record(connection, actor(), "set limit", subject=name, reason=reason, detail={"rate": rate})
    print(f"rate of {name}: {'as declared' if rate == 'declared' else rate}")


@limits.command()
def pause(name: Name, time: For = None, reason: Why = None) -> None:
    """Hold its jobs at the gate; what runs goes on. A longer pause stands."""
    seconds = None if time is None else seconds_of("--for", time)
    with transaction() as connection:
        store.pause_limit(connection, name, seconds)
        control.record(connection, actor(), "pause limit", subject=name, reason=reason)
    print(f"paused {name}; to end it: pipeline limits resume {name}")


@limits.command()
def resume(name: Name, reason: Why = None) -> None:
    """End a pause, also one that an outside system asked for. Of an open breaker: one job probes now."""
    with transaction() as connection:
        was_paused = store.resume_limit(connection, name)
        control.record(connection, actor(), "resume limit", subject=name, reason=reason)
    print(f"resumed {name}" if was_paused else f"{name} was not paused")


def _rate(one: LimitNow) -> str:
    if one.rate is None:
        return f"as {one.template}" if one.template else ""
    return f"{one.rate:g}/s" + (" (set)" if one.rate_is_set else "")


def _pause(one: LimitNow) -> str:
    if not one.paused:
        return ""
    until = "until it is resumed" if one.paused_until is None else f"until {one.paused_until:%F %T %Z}"
    return f"{one.pause_reason}, {until}"
