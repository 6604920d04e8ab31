"""Workers: what one runs, and draining it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from pipeline.front.api.http.auth import Operator, Viewer
from pipeline.front.api.http.fields import Text
from pipeline.front.api.http.problem import Problem, conflict, not_found
from pipeline.front.api.http.responses import problems
from pipeline.front.api.http.shorten import shorten
from pipeline.front.api.models import JobRow, Worker
from pipeline.front.database import transaction
from pipeline.store import inspect
from pipeline.store.control import actions as control

router = APIRouter(prefix="/v1/workers", tags=["control"])
ONE = problems(401, 403, 404, 422, 503)
CHANGE = problems(400, 401, 403, 404, 409, 413, 422, 503)
WorkerId = Annotated[str, Path(max_length=200, pattern=r"^[A-Za-z0-9._-]+$", description="a worker's id")]


class Why(BaseModel):
    """For the audit."""

    model_config = ConfigDict(extra="forbid")
    reason: Text | None = None


class WorkerDetail(BaseModel):
    """A worker and what it does now."""

    worker: Worker
    jobs: list[JobRow] = Field(description="what it runs, the longest first, up to 200")


@router.get("/{worker_id}", responses=ONE)
def show(who: Viewer, worker_id: WorkerId) -> WorkerDetail:  # noqa: ARG001
    """A worker process that lives, or went in the last hour, with the jobs that it runs."""
    with transaction() as connection:
        row = _row(connection, worker_id)
        jobs = inspect.jobs_of_worker(connection, worker_id)
    for job in jobs:
        job["error_message"] = shorten(job["error_message"])
    return WorkerDetail.model_validate({"worker": row, "jobs": jobs})


@router.post("/{worker_id}/drain", responses=CHANGE)
def drain(who: Operator, worker_id: WorkerId, why: Why | None = None) -> Worker:
    """Let a worker take nothing new; it finishes what it has and stays until it is stopped, or resumed."""
    return _drain(who, worker_id, why, wanted=True)


@router.post("/{worker_id}/resume", responses=CHANGE)
def resume(who: Operator, worker_id: WorkerId, why: Why | None = None) -> Worker:
    """Let a worker that was drained take jobs again."""
    return _drain(who, worker_id, why, wanted=False)


def _drain(who: Operator, worker_id: str, why: Why | None, *, wanted: bool) -> Worker:
    with transaction() as connection:
        if not control.drain(connection, worker_id, wanted=wanted):
            raise _not_alive(connection, worker_id)
        action, reason = "drain" if wanted else "resume", why.reason if why else None
        control.record(connection, who.actor, action, subject=f"worker {worker_id}", reason=reason)
        return Worker.model_validate(_row(connection, worker_id))


def _row(connection: Connection, worker_id: str) -> dict[str, object]:
    for row in inspect.worker_rows(connection):
        if row["id"] == worker_id:
            return row
    raise not_found("worker", worker_id)


def _not_alive(connection: Connection, worker_id: str) -> Problem:
    return conflict(f"worker {worker_id} is not alive: it is {_row(connection, worker_id)['state']}")
