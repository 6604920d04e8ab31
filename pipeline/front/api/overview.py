"""The cluster at a glance: workers, batches, statistics."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from pipeline.declare.states import Status
from pipeline.front.api import stats
from pipeline.front.api.http.auth import Viewer
from pipeline.front.api.http.cursors import decode_cursor
from pipeline.front.api.http.fields import Name
from pipeline.front.api.http.pages import Cursor, Limit, Page, cut
from pipeline.front.api.http.problem import not_found
from pipeline.front.api.http.responses import problems
from pipeline.front.api.models import Batch, JobRow, Worker, job_page
from pipeline.front.api.stats import Rollup, Stats
from pipeline.front.database import transaction
from pipeline.store import inspect

router = APIRouter(prefix="/v1", tags=["overview"], responses=problems(401, 403, 422, 503))
QueueName = Annotated[str, Query(pattern=r"^[a-z0-9.-]+$", max_length=130)]


@router.get("/workers")
def workers(who: Viewer) -> list[Worker]:  # noqa: ARG001
    """Worker processes that live, and those that went in the last hour."""
    with transaction() as connection:
        return [Worker.model_validate(row) for row in inspect.worker_rows(connection)]


@router.get("/batches")
def batches(
    who: Viewer,  # noqa: ARG001  asked for, so that only viewers get in
    open_only: Annotated[bool, Query(alias="open")] = False,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[Batch]:
    """Batches, newest first; ``open`` leaves out the complete ones."""
    place = decode_cursor(cursor, UUID)
    with transaction() as connection:
        rows = inspect.batches(connection, open_only=open_only, before=place[0] if place else None, limit=limit + 1)
    return Page[Batch].model_validate(cut(rows, limit, lambda row: str(row["id"])))


@router.get("/batches/{batch_id}", responses=problems(404))
def show_batch(who: Viewer, batch_id: UUID) -> Batch:  # noqa: ARG001
    """One batch."""
    with transaction() as connection:
        found = inspect.batch(connection, batch_id)
    if found is None:
        raise not_found("batch", batch_id)
    return Batch.model_validate(found)


@router.get("/batches/{batch_id}/jobs", responses=problems(404))
def jobs_of_batch(
    who: Viewer,  # noqa: ARG001
    batch_id: UUID,
    status: Annotated[Status | None, Query()] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[JobRow]:
    """The jobs of a batch, oldest first."""
    place = decode_cursor(cursor, UUID)
    after = place[0] if place else None
    with transaction() as connection:
        if inspect.batch(connection, batch_id) is None:
            raise not_found("batch", batch_id)
        rows = inspect.jobs_of_batch(connection, batch_id, status=status, after=after, limit=limit + 1)
    return job_page(rows, limit)


@router.get("/stats")
def now(request: Request, who: Viewer) -> Stats:  # noqa: ARG001
    """Every phase now: waiting by reason, queued, running, pool, failed, rates. Computed at most once a second."""
    found: Stats = request.app.state.stats.get()
    return found


@router.get("/stats/history", response_model=list[Rollup])
def history(
    who: Viewer,  # noqa: ARG001
    hours: Annotated[float, Query(gt=0, le=168, allow_inf_nan=False)] = 3,
    workflow: Annotated[Name | None, Query()] = None,
    queue: QueueName | None = None,
) -> Response:
    """One row a phase and minute (a quarter of an hour beyond six hours), oldest first, for charts."""
    with transaction() as connection:
        return Response(stats.history(connection, hours, workflow, queue), media_type="application/json")
