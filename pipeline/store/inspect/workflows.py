"""A workflow beside its phases: what ended and how long it took, its hooks, how its keys take turns."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

OF_WORKFLOW = """SELECT r.at, ph.phase, r.succeeded, r.retried + r.crashed + r.failed AS errors, r.failed, r.ran, r.took
    FROM {table} r JOIN pipeline.phases ph ON ph.queue = r.queue
    WHERE r.at > now() - make_interval(secs => :hours * 3600) AND ph.workflow = :workflow ORDER BY r.at, ph.position"""
MINUTES_OF, QUARTERS_OF = (
    text(OF_WORKFLOW.format(table=one)) for one in ("pipeline.rollups", "pipeline.rollup_quarters")
)
BOUNDS = text("SELECT pipeline.duration_bounds()")
HOOKS = text("""SELECT workflow, event, submits FROM pipeline.hooks
    WHERE workflow = :workflow OR submits = :workflow ORDER BY workflow, event, submits""")
TURNS = text("""SELECT field, per_key, in_order, rate_count, rate_seconds FROM pipeline.turns
    WHERE workflow = :workflow AND field IS NOT NULL""")


class PhaseMinute(NamedTuple):
    """What ended in a phase in a minute, or a quarter of an hour; with histograms of how long it took.

    ``ran``: the phase's function; ``took``: whole jobs that ended there.
    """

    at: datetime
    phase: str
    succeeded: int
    errors: int
    failed: int
    ran: list[int]
    took: list[int]


class Hook(NamedTuple):
    """Ends of the workflow's jobs submit a job of another one."""

    workflow: str
    event: str
    submits: str


def workflow_minutes(connection: Connection, workflow: str, hours: float, *, quarters: bool) -> list[PhaseMinute]:
    """What ended in each phase of a workflow, a row a minute or a quarter of an hour, oldest first."""
    values = {"workflow": workflow, "hours": hours}
    found = connection.execute(QUARTERS_OF if quarters else MINUTES_OF, values)
    return [PhaseMinute._make(row) for row in found]


def duration_bounds(connection: Connection) -> list[float]:
    """The seconds between which the histograms of durations count."""
    return list(connection.execute(BOUNDS).scalar_one())


def hooks(connection: Connection, workflow: str) -> list[Hook]:
    """What ends of this workflow's jobs submit, and whose ends submit it."""
    return [Hook._make(row) for row in connection.execute(HOOKS, {"workflow": workflow})]


def turns(connection: Connection, workflow: str) -> dict[str, Any] | None:
    """How the keys of its jobs take turns; None if they have no keys."""
    found = connection.execute(TURNS, {"workflow": workflow}).mappings().one_or_none()
    return None if found is None else dict(found)
