"""What ended in each phase of a workflow over time, and how long it took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from pipeline.front.api.http.auth import Viewer
from pipeline.front.api.http.fields import Name
from pipeline.front.api.http.problem import not_found
from pipeline.front.api.http.responses import problems
from pipeline.front.database import transaction
from pipeline.store.inspect import workflows as stored
from pipeline.store.inspect.workflows import PhaseMinute
from pipeline.store.register import in_force

router = APIRouter(prefix="/v1/workflows", tags=["workflows"])
MINUTE, QUARTER, HOUR = timedelta(minutes=1), timedelta(minutes=15), timedelta(hours=1)
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


class Ended(BaseModel):
    """What ended, and how long it took. Durations are read from histograms: within half of the true value."""

    succeeded: int = Field(description="attempts; of the whole: jobs")
    errors: int = Field(description="attempts that retried, crashed or failed; of the whole: jobs that failed")
    p50: float | None = Field(description="seconds; null if nothing ended")
    p99: float | None


class Point(BaseModel):
    """A step of time."""

    at: datetime
    whole: Ended
    phases: dict[str, Ended] = Field(description="by phase; those in which something ended")


class WorkflowHistory(BaseModel):
    """The workflow in that time: altogether, and step by step, oldest first. Steps without anything are left out."""

    step_seconds: int
    whole: Ended = Field(description="jobs from their submission to their end")
    phases: dict[str, Ended]
    points: list[Point]


@router.get("/{name}/history", responses=problems(401, 403, 404, 422, 503))
def history(
    who: Viewer,  # noqa: ARG001  the dependency is the check
    name: Annotated[Name, Path(description="a workflow's name")],
    hours: Annotated[float, Query(gt=0, le=168, allow_inf_nan=False)] = 24,
) -> WorkflowHistory:
    """What ended and how long it took, a minute a step; beyond three hours a quarter, beyond a day an hour."""
    with transaction() as connection:
        found = in_force(connection, [name])
        rows = stored.workflow_minutes(connection, name, hours, quarters=hours > 3)
        bounds = stored.duration_bounds(connection)
    if not found:
        raise not_found("workflow", name)
    last = found[name][-1]["phase"]
    return _history(rows, bounds, last, HOUR if hours > 24 else QUARTER if hours > 3 else MINUTE)


def _history(rows: list[PhaseMinute], bounds: Sequence[float], last: str, step: timedelta) -> WorkflowHistory:
    steps: dict[datetime, list[PhaseMinute]] = defaultdict(list)
    for row in rows:
        steps[row.at - (row.at - EPOCH) % step].append(row)
    points = [
        Point(at=at, whole=_whole(some, bounds, last), phases=_phases(some, bounds)) for at, some in steps.items()
    ]
    whole, phases = _whole(rows, bounds, last), _phases(rows, bounds)
    return WorkflowHistory(step_seconds=int(step.total_seconds()), whole=whole, phases=phases, points=points)


def _phases(rows: list[PhaseMinute], bounds: Sequence[float]) -> dict[str, Ended]:
    found: dict[str, list[PhaseMinute]] = defaultdict(list)
    for row in rows:
        if row.succeeded or row.errors:
            found[row.phase].append(row)
    return {
        phase: _ended(
            sum(row.succeeded for row in some), sum(row.errors for row in some), [r.ran for r in some], bounds
        )
        for phase, some in found.items()
    }


def _whole(rows: list[PhaseMinute], bounds: Sequence[float], last: str) -> Ended:
    succeeded = sum(row.succeeded for row in rows if row.phase == last)
    return _ended(succeeded, sum(row.failed for row in rows), [row.took for row in rows], bounds)


def _ended(succeeded: int, errors: int, histograms: list[list[int]], bounds: Sequence[float]) -> Ended:
    added = [sum(counts) for counts in zip(*(one for one in histograms if one), strict=True)]
    p50, p99 = (percentile(added, bounds, share) for share in (0.5, 0.99))
    return Ended(succeeded=succeeded, errors=errors, p50=p50, p99=p99)


def percentile(counts: Sequence[int], bounds: Sequence[float], share: float) -> float | None:
    """The duration that so large a share does not exceed: within its bucket as if evenly spread.

    ``counts`` has one more than ``bounds``: below the first, between two, and above the last.
    """
    if not any(counts):
        return None
    sought = share * sum(counts)
    ends = list(accumulate(counts))
    place = next(i for i, end in enumerate(ends) if end >= sought and counts[i])
    low = bounds[place - 1] if place else 0.0
    if place == len(bounds):
        return low
    inside = (sought - ends[place] + counts[place]) / counts[place]
    return low + inside * (bounds[place] - low)
