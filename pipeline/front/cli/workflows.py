"""The workflows, for commands: those that the settings name, and those that PostgreSQL knows."""

from __future__ import annotations

import sys
from functools import lru_cache

import typer
from sqlalchemy import Connection

from pipeline.declare.errors import BadInput
from pipeline.store.gateway import reading


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
