"""The workflows, for commands: those that the settings name, and those that PostgreSQL knows."""

from __future__ import annotations

import json
import sys
from functools import lru_cache
from typing import Any

import typer
from rich.table import Table
from sqlalchemy import Connection

from pipeline import settings
from pipeline.declare.errors import BadInput
from pipeline.declare.registry import workflows
from pipeline.front.cli.console import Json, console
from pipeline.front.database import transaction
from pipeline.store.gateway import reading
from pipeline.store.register import differences, in_force


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("workflows")(show)


def show(as_json: Json = False) -> None:
    """Workflows and their phases as PostgreSQL knows them, and where this code differs."""
    loaded = load_workflows()
    with transaction() as connection:
        known = in_force(connection)
        differing = differences(connection, workflows().values(), settings.get().stale_seconds) if loaded else []
    if as_json:
        chains = [{"name": name, "phases": phases} for name, phases in known.items()]
        print(json.dumps({"workflows": chains, "differences": [vars(one) for one in differing]}))
        return
    table = Table(
        "workflow", "phase", "pool", "queue limit", "errors", "crashes", "stale after", "isolated", "throttle"
    )
    for name, phases in known.items():
        for phase in phases:
            table.add_row(name, *_row(phase))
    console().print(table)
    for one in differing:
        where = f"{one.workflow}.{one.phase}" if one.phase else one.workflow
        print(f"{where}: {one.option} is {one.database or 'unknown'} in PostgreSQL and {one.code} in this code")
    if differing:
        print("PostgreSQL's are in force; to put this code's in force: pipeline migrate")


def _row(phase: dict[str, Any]) -> list[str]:
    rate = _rate(phase["throttle_count"], phase["throttle_seconds"])
    if phase["rate_is_set"]:
        declared = _rate(phase["declared_throttle_count"], phase["declared_throttle_seconds"])
        rate = f"{rate or 'none'} (set; declared {declared or 'none'})"
    pool = str(phase["pool"] or "")
    if phase["pool_is_set"]:
        pool = f"{pool or 'none'} (set; declared {phase['declared_pool'] or 'none'})"
    counts = [str(phase[name]) for name in ("queue_limit", "max_attempts", "max_crashes")]
    isolated = "yes" if phase["isolated"] else ""
    return [phase["phase"], pool, *counts, f"{phase['stale_after']:g} s", isolated, rate]


def _rate(count: int | None, seconds: float | None) -> str:
    return "" if count is None else f"{count} in {seconds:g} s"


@lru_cache(maxsize=1)
def load_workflows() -> bool:
    """Declare them, once. What keeps them from it is said here; False then."""
    try:
        import pipeline.actors  # noqa: F401  declares the workflows
    except Exception as error:
        sys.stderr.write(f"pipeline: the workflows could not be loaded: {error}\n")
        return False
    return True


def need_workflows() -> None:
    """For a command that is of no use without them: end it if they could not be loaded."""
    if not load_workflows():
        raise typer.Exit(1)


def check_phase(connection: Connection, workflow: str | None, phase: str | None) -> None:
    """Refuse a workflow or a phase that PostgreSQL does not know: a typing error must not look like an empty list."""
    known = [queue.split(".") for queue in reading.queues(connection)]
    wanted = [part for part in (workflow, phase) if part is not None]
    if wanted and not any(workflow in (None, one) and phase in (None, other) for one, other in known):
        names = ", ".join(".".join(queue) for queue in known[:30]) or 'none yet (run "pipeline migrate")'
        raise BadInput(f"there is no workflow or phase {'.'.join(wanted)!r}; PostgreSQL knows: {names}")
