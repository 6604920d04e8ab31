"""Jobs left in a phase that their workflow no longer has: how many there are, and how they go on."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Engine, text

from pipeline.journey.submit import readable_errors

UNDECLARED = text("SELECT queue, jobs, running FROM pipeline.undeclared()")
MOVE = text("SELECT moved, running, locked, last FROM pipeline.move(:queue, :phase, :after, :most)")
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
            values = {"queue": queue, "phase": phase, "after": after, "most": batch}
            moved, running, locked, after = connection.execute(MOVE, values).one()
        total.moved += moved
        total.running += running
        total.locked += locked
        if after is None:
            return total


def undeclared(engine: Engine) -> list[tuple[str, int, int]]:
    """Phases that nobody declares any more and that still have jobs: queue, jobs, and how many of them run."""
    with engine.connect() as connection:
        return [(row.queue, row.jobs, row.running) for row in connection.execute(UNDECLARED)]
