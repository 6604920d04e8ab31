"""Jobs: submit, list, look at, cancel, replay."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from pipeline.declare.options import MOST_TAGS, OneJob, Until
from pipeline.declare.registry import body_codec
from pipeline.declare.states import Status
from pipeline.front.advice import advice
from pipeline.front.api.http.auth import Operator, Viewer
from pipeline.front.api.http.cursors import decode_cursor, encode_cursor
from pipeline.front.api.http.fields import Body, JobId, Moment, Name, Priority, Seconds, Tag, Text, typed
from pipeline.front.api.http.pages import Cursor, Limit, Page
from pipeline.front.api.http.problem import Problem, conflict, not_found
from pipeline.front.api.http.responses import problems
from pipeline.front.api.http.shorten import shorten
from pipeline.front.api.many import Wanted
from pipeline.front.api.models import Accepted, AttemptLog, Changed, JobDetail, JobRow, job_page
from pipeline.front.database import transaction
from pipeline.journey import submit as steer
from pipeline.store import inspect
from pipeline.store.control import actions as control
from pipeline.store.gateway import client
from pipeline.store.gateway.callers import run

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
READ = problems(401, 403, 422, 503)
ONE = problems(401, 403, 404, 422, 503)
CHANGE = problems(400, 401, 403, 404, 409, 413, 422, 503)


class NewJob(BaseModel):
    """What to do. The body holds references, not data: at most 64 KiB."""

    model_config = ConfigDict(extra="forbid")
    workflow: Name
    body: Body = Field(default_factory=dict)
    priority: Priority = 0
    due: Moment | None = Field(default=None, description="not before this moment")
    delay: Seconds | None = Field(default=None, description="not before so long after now")
    unique: Until | Seconds | None = Field(
        default=None, description="how long the key, or without one the body, stays the job's: open, replace or seconds"
    )
    debounce: Seconds | None = Field(default=None, description="due so long after the last submit")
    tags: list[Tag] = Field(default_factory=list, max_length=MOST_TAGS)
    expires: Moment | Seconds | None = Field(default=None, description="fail unless it has begun by then")

    def options(self, key: str | None, traceparent: str | None) -> OneJob:
        """As ``submit`` takes them."""
        unique, expires = self.unique, self.expires
        return {
            "key": key,
            "traceparent": traceparent,
            "priority": self.priority,
            "due": self.due,
            "unique": timedelta(seconds=unique) if isinstance(unique, float) else unique,
            "delay": None if self.delay is None else timedelta(seconds=self.delay),
            "debounce": None if self.debounce is None else timedelta(seconds=self.debounce),
            "tags": self.tags,
            "expires": timedelta(seconds=expires) if isinstance(expires, float) else expires,
        }


class Reason(BaseModel):
    """Why, for the job's history."""

    model_config = ConfigDict(extra="forbid")
    reason: Text = "cancelled by request"


@router.post("", status_code=202, responses=problems(400, 401, 403, 409, 413, 422, 503))
def submit(
    who: Operator,  # noqa: ARG001  the dependency is the check
    wish: NewJob,
    response: Response,
    key: Annotated[
        str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")
    ] = None,
    traceparent: Annotated[str | None, Header(description="W3C; the job joins this trace")] = None,
) -> Accepted:
    """Submit a job. It is accepted also while RabbitMQ is away.

    With an Idempotency-Key the same request gives the same job, however often it is sent; the key belongs to the
    workflow, and with another body or priority it is refused (409). With ``unique`` or ``debounce`` it is not refused:
    they say which job another request gets.
    """
    body = typed(wish.workflow, wish.body)
    with transaction() as connection:
        job = steer.submit(connection, wish.workflow, body, **wish.options(key, traceparent))
        kept = key is not None and wish.unique is None and wish.debounce is None
        encoded = body_codec(wish.workflow).encode
        if kept and not inspect.is_same_wish(connection, job, encoded(body), wish.priority):
            raise Problem(
                409,
                "Key used before",
                f"Idempotency-Key belongs to job {job}, which has another body or "
                "priority; use a new key for a new job",
            )
    response.headers["Location"] = f"/v1/jobs/{job}"
    return Accepted(id=job, status_url=f"/v1/jobs/{job}")


@router.get("", responses=READ)
def list_jobs(
    who: Viewer,  # noqa: ARG001
    wanted: Annotated[Wanted, Depends()],
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[JobRow]:
    """Jobs, newest first. A page can be short, even empty, and have a ``next`` all the same: follow it."""
    place = decode_cursor(cursor, UUID)
    with transaction() as connection:
        ids, following = client.find(connection, wanted.where(), place[0] if place else None, limit)
        rows = inspect.jobs(connection, ids)
    return Page[JobRow].model_validate(
        {"items": rows, "next": None if following is None else encode_cursor(str(following))}
    )


@router.get("/{job_id}", responses=ONE)
def show(who: Viewer, job_id: JobId) -> JobDetail:  # noqa: ARG001
    """One job: its row, where its time went, its attempts, its steps, what its workflow stored."""
    with transaction() as connection:
        found = inspect.look(connection, job_id)
    if found is None:
        raise not_found("job", job_id)
    row = found["job"]
    row["error_message"] = shorten(row["error_message"])
    row["tags"] = row["tags"] or []
    return JobDetail(
        job=JobRow.model_validate(row),
        waits_for=found["waits_for"],
        advice=advice(found),
        due_at=found["due_at"],
        body=shorten(row["body"]),
        whole=shorten(row["body"]) == row["body"],
        result=shorten(row["result"]),
        timeline=found["timeline"],
        attempts=found["attempts"],
        why=found["why"],
        steps=found["steps"],
        output=shorten(found["output"]),
        waiting=found["waiting"],
        parent=found["parent"],
        children=found["children"],
        events=found["events"],
    )


@router.get("/{job_id}/children", responses=ONE)
def children(
    who: Viewer,  # noqa: ARG001
    job_id: JobId,
    status: Annotated[Status | None, Query()] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[JobRow]:
    """The children of a job, in the order of their bodies."""
    place = decode_cursor(cursor, UUID)
    with transaction() as connection:
        _status(connection, job_id)
        after = place[0] if place else None
        rows = inspect.children(connection, job_id, status=status, after=after, limit=limit + 1)
    return job_page(rows, limit)


@router.get("/{job_id}/attempts/{fence}", responses=ONE)
def show_attempt(who: Viewer, job_id: JobId, fence: Annotated[int, Path(ge=1, lt=2**63)]) -> AttemptLog:  # noqa: ARG001
    """One attempt that has ended, with its traceback and the last lines that its phase logged."""
    with transaction() as connection:
        found = inspect.log(connection, job_id, fence)
    if found is None:
        raise not_found("attempt", f"{fence} of job {job_id}")
    return AttemptLog.model_validate(found)


@router.post("/{job_id}/cancel", responses=CHANGE)
def cancel(who: Operator, job_id: JobId, why: Reason | None = None) -> Changed:
    """Cancel a job that has not ended. Nothing of a running attempt is kept."""
    reason = (why or Reason()).reason
    with transaction() as connection:
        done = steer.cancel(connection, job_id, reason)
        if done:
            control.record(connection, who.actor, "cancel", reason=reason, jobs=1, ids=[job_id])
        status = _status(connection, job_id)
    if not done:
        raise conflict(f"job {job_id} has already finished: it is {status}")
    return Changed(id=job_id, status=status)


class Again(BaseModel):
    """How it starts again."""

    model_config = ConfigDict(extra="forbid")
    body: Body | None = Field(default=None, description="in place of the job's body; results of earlier phases stay")
    reason: Text | None = Field(default=None, description="why, for the audit")


@router.post("/{job_id}/replay", status_code=202, responses=CHANGE)
def replay(who: Operator, job_id: JobId, wish: Again | None = None) -> Changed:
    """Start the phase of a failed or cancelled job again, with fresh budgets, and with another body if one is given."""
    body = wish.body if wish is not None else None
    with transaction() as connection:
        encoded = None if body is None else _encoded(connection, job_id, body)
        done = run(connection, client.replay(job_id, encoded))
        if done:
            detail = None if body is None else {"body": "another"}
            reason = wish.reason if wish is not None else None
            control.record(connection, who.actor, "replay", reason=reason, jobs=1, ids=[job_id], detail=detail)
        status = _status(connection, job_id)
    if not done:
        raise conflict(
            f"job {job_id} was not replayed: {inspect.WITHOUT_ITS_KEY}"
            if status in (Status.FAILED, Status.CANCELLED)
            else f"job {job_id} is {status}; only a failed or cancelled job can be replayed"
        )
    return Changed(id=job_id, status=status)


def _encoded(connection: Connection, job_id: UUID, body: dict[str, Any]) -> str:
    """As its workflow's type has it; each wrong field is named."""
    found = inspect.row(connection, job_id)
    if found is None:
        raise not_found("job", job_id)
    workflow = found["workflow"]
    return body_codec(workflow).encode(typed(workflow, body)).decode()


def _status(connection: Any, job_id: UUID) -> str:
    status = inspect.status(connection, job_id)
    if status is None:
        raise not_found("job", job_id)
    return status
