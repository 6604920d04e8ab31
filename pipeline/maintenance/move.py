"""Jobs left in a phase that their workflow no longer has: how many there are, and how they continue."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Engine

from pipeline.store.gateway import upkeep
from pipeline.store.gateway.callers import readable_errors
from pipeline.store.gateway.upkeep import Undeclared

BATCH = 1000


@dataclass
class Moved:
    """What a move did, and what it left because it runs or is locked."""

    moved: int = 0
    running: int = 0
    locked: int = 0


def move(engine: Engine, queue: str, phase: str, batch: int = BATCH) -> Moved:
    """Move the waiting jobs of a retired phase (``workflow.phase``) to another; each batch is its own transaction."""
    total, after = Moved(), None
    while True:
        with readable_errors(), engine.begin() as connection:
            moved, running, locked, after = upkeep.move(connection, queue, phase, after=after, most=batch)
        total.moved += moved
        total.running += running
        total.locked += locked
        if after is None:
            return total


def undeclared(engine: Engine) -> list[Undeclared]:
    """Phases that nobody declares any more and that still have jobs."""
    with engine.connect() as connection:
        return upkeep.undeclared(connection)
