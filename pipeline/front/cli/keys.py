"""``pipeline keys``: how the keys of a workflow stand, and one key among the others."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from pipeline.front.cli.console import Json, console
from pipeline.front.cli.phases import For, Why
from pipeline.front.cli.times import seconds_of
from pipeline.front.database import transaction
from pipeline.front.whoami import actor
from pipeline.store.control import actions as control

keys = typer.Typer(no_args_is_help=True, help="Keys of a workflow: who waits for a turn; pause, resume and weigh one.")
Workflow = Annotated[str, typer.Argument(help="The workflow.")]
Key = Annotated[str, typer.Argument(help="One of its keys.")]
MANY = 1000


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.add_typer(keys, name="keys")


@keys.command("list")
def show(
    workflow: Workflow,
    first: Annotated[str, typer.Option("--from", metavar="KEY", help="Begin with this key.")] = "",
    most: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many keys.")] = 50,
    as_json: Json = False,
) -> None:
    """The keys that have unfinished jobs, in their order."""
    with transaction() as connection:
        found = control.list_turns(connection, workflow, first, most)
    if as_json:
        print(json.dumps([one._asdict() for one in found], default=str))
        return
    table = Table("key", "under way", "waiting", "weight", "paused")
    for one in found:
        until = "until it is resumed" if one.paused_until is None else f"until {one.paused_until:%F %T %Z}"
        waiting = f"{one.waiting}" if one.waiting < MANY else f"{MANY:,} or more"
        table.add_row(one.key or "(none)", f"{one.under_way}", waiting, f"{one.weight}", until if one.paused else "")
    console().print(table)
    if len(found) == most:
        print(f"there may be more: pipeline keys list {workflow} --from {found[-1].key!r}")


@keys.command()
def pause(workflow: Workflow, key: Key, time: For = None, reason: Why = None) -> None:
    """Begin no more jobs of the key; what is under way goes on."""
    seconds = None if time is None else seconds_of("--for", time)
    with transaction() as connection:
        control.pause_key(connection, workflow, key, seconds)
        control.record(connection, actor(), "pause key", subject=f"{workflow} {key}", reason=reason)
    print(f"paused {key} of {workflow}; to end it: pipeline keys resume {workflow} {key}")


@keys.command()
def resume(workflow: Workflow, key: Key, reason: Why = None) -> None:
    """End the pause of a key."""
    with transaction() as connection:
        was_paused = control.resume_key(connection, workflow, key)
        control.record(connection, actor(), "resume key", subject=f"{workflow} {key}", reason=reason)
    print(f"resumed {key} of {workflow}" if was_paused else f"{key} of {workflow} was not paused")


@keys.command()
def weigh(
    workflow: Workflow,
    key: Key,
    weight: Annotated[int, typer.Argument(min=1, max=1000, help="Jobs in each of its turns; 1 is the default.")],
    reason: Why = None,
) -> None:
    """Give a key more jobs in each of its turns, where others have one."""
    with transaction() as connection:
        control.set_key_weight(connection, workflow, key, weight)
        control.record(
            connection, actor(), "weigh key", subject=f"{workflow} {key}", reason=reason, detail={"weight": weight}
        )
    print(f"{weight} jobs of {key} go in each of its turns")
