"""The workflows that the settings name, for commands."""

from __future__ import annotations

import sys
from functools import lru_cache

import typer


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
