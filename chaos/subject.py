"""What is put under fire: the workflow of this folder, or the user's own."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Body = Callable[[int, random.Random], dict[str, Any]]
# Those of its jobs that wait: for so many children, and for a word.
WAITING, CHILDREN, WORD = "chaos-waits", 3, "go"
# What schedules submit.
SCHEDULED = "chaos-scheduled"
# Those that end in every way, with a hook for each.
ENDING = "chaos-ends"
FATES = ("succeeded", "failed", "cancelled")
# Those of a few customers, so many of each at once.
KEYED, CUSTOMERS, PER_KEY = "chaos-keyed", 5, 2
# Threads, the event loop, steps in all kinds of places, child processes, waits, hooks, keys.
STREAM = ("chaos", "chaos-async", "chaos-steps", "chaos", "chaos-isolated", WAITING, ENDING, KEYED)


@dataclass(frozen=True)
class Subject:
    """A workflow, how its bodies are made, and whether its phases write the ledger.

    ``stream``: the workflows that the steady stream of jobs takes in turn.
    """

    module: str
    workflow: str
    body: Body
    has_ledger: bool
    set_up: Callable[[Any], None]
    stream: tuple[str, ...]


def fate(n: int) -> str:
    """How job number n of those that end in every way is meant to end."""
    return FATES[n // len(STREAM) % len(FATES)]


def find(name: str | None) -> Subject:
    """``module:workflow``, or without a name the workflow of this folder; raises ValueError that says what is wrong."""
    if name is None:
        return Subject("chaos.workflow", "chaos", _own_body, True, _make_ledger, STREAM)
    module_name, _, workflow = name.partition(":")
    if not module_name or not workflow:
        raise ValueError(f"--workflow {name!r}: write module:workflow, like my_app.jobs:orders")
    importlib.import_module("pipeline.actors")
    module = importlib.import_module(module_name)
    from pipeline.declare.registry import workflows

    if workflow not in workflows():
        raise ValueError(f"--workflow {name!r}: {module_name} declares no workflow {workflow!r}")
    make = getattr(module, "chaos_body", lambda n: {"n": n})
    set_up = getattr(module, "chaos_set_up", lambda connection: None)
    return Subject(module_name, workflow, lambda n, chance: dict(make(n)), False, set_up, (workflow,))


def _own_body(n: int, chance: random.Random) -> dict[str, Any]:
    customer = f"c-{n % CUSTOMERS}"
    return {
        "n": n,
        "customer": customer,
        "seconds": {phase: round(chance.uniform(0.05, 0.6), 3) for phase in ("first", "second", "third")},
    }


def _make_ledger(connection: Any) -> None:
    from chaos.workflow import LEDGER

    connection.execute(LEDGER)
