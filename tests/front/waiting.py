"""Jobs that wait, without a worker: their attempts are held and ended by hand."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from pipeline.journey.submit import submit
from tests.db import steps
from tests.place import Place


def waiting(place: Place, event: str = "approved", workflow: str = "triple", **following: Any) -> UUID:
    """A job that waits for the event."""
    hold = steps.held(place.db, workflow)
    steps.complete(place.db, hold, {"default": 1}, following={"event": event, **following})
    return hold.job


def parent(
    place: Place, children: int, policy: str = "best_effort", workflow: str = "single"
) -> tuple[UUID, list[UUID]]:
    """A job that waits for its children, and they."""
    hold, batch = steps.held(place.db, "triple"), uuid4()
    bodies = [Jsonb({"n": n}) for n in range(children)]
    with place.db.transaction():
        place.rows(
            "SELECT pipeline.spawn(%s, %s, %s, %s, %s::jsonb[], 0, NULL)", hold.job, batch, policy, workflow, bodies
        )
        steps.complete(place.db, hold, following={"batch": str(batch)})
    found = place.rows("SELECT id FROM pipeline.ends(%s, NULL, 0, 1000000)", batch)
    return hold.job, [row["id"] for row in found]


def end(place: Place, *jobs: UUID, failed: bool = False) -> None:
    """They end."""
    for job in jobs:
        hold = steps.hold(place.db, job)
        if failed:
            steps.fail(place.db, hold, "gone")
        else:
            steps.complete(place.db, hold, {"of": str(job)})


def taken(place: Place, job: UUID) -> list[Any]:
    """The bodies that ended waits."""
    rows = place.rows("SELECT body FROM pipeline.signals WHERE job_id = %s AND taken_at IS NOT NULL ORDER BY seq", job)
    return [row["body"] for row in rows]


def asks(place: Place) -> UUID:
    """A job of the shop that waits for a decision: {"yes": bool, "note": str}."""
    job = submit(None, "shop-returns", {})
    hold = steps.hold(place.db, job)
    steps.complete(place.db, hold, None, following={"event": "decided"})
    return job
