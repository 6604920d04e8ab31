"""Events of a job: telling it of one, and links by which somebody else can."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Body, Request, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from pipeline.declare.errors import LONGEST
from pipeline.declare.job import PLAIN
from pipeline.declare.phase import BODY_LIMIT
from pipeline.declare.registry import BadEvent, check_event_body
from pipeline.declare.waits.next import LONGEST_EVENT
from pipeline.event_links import event_link
from pipeline.front.api.http.auth import Operator
from pipeline.front.api.http.fields import JobId, is_event, is_json
from pipeline.front.api.http.problem import Problem, conflict, invalid, not_found
from pipeline.front.api.http.responses import problems
from pipeline.front.database import transaction
from pipeline.journey import submit as steer
from pipeline.store import inspect
from pipeline.store.control import actions as control
from pipeline.store.inspect import waits

router = APIRouter(prefix="/v1/jobs", tags=["events of jobs"])
CHANGE = problems(400, 401, 403, 404, 409, 413, 422, 503)
EventName = Annotated[str, Field(min_length=1, max_length=LONGEST_EVENT), AfterValidator(is_event)]
AnyJson = Annotated[Any, AfterValidator(is_json)]


class Told(BaseModel):
    """What became of the event."""

    id: UUID
    event: str
    answer: Literal["delivered", "kept"] = Field(
        description="delivered: the job waited for it and continues; kept: until the job waits for it"
    )


class NewLink(BaseModel):
    """What the link tells, and until when."""

    model_config = ConfigDict(extra="forbid")
    expires: Annotated[float, Field(ge=1, le=LONGEST, strict=True, description="seconds from now")] = 7 * 86400.0
    body: AnyJson = Field(default=None, description="what it tells, at most 1024 bytes; null: a POST may bring JSON")


class EventLink(BaseModel):
    """Whoever has the address can tell the job of the event, once."""

    link: str
    expires_at: datetime


@router.post(
    "/{job_id}/events/{event}",
    responses={202: {"model": Told, "description": "kept until the job waits for it"}, **CHANGE},
)
def tell(
    who: Operator,
    job_id: JobId,
    event: EventName,
    response: Response,
    body: Annotated[AnyJson, Body(description="any JSON, at most 64 KiB; it becomes the result of the phase")] = None,
) -> Told:
    """Tell a job of an event. 200: it waited for it and continues; 202: it is kept until the job waits for it."""
    with transaction() as connection:
        check_body(connection, job_id, event, body)
        answer = steer.signal(connection, job_id, event, body)
        if answer in ("delivered", "kept"):
            control.record(connection, who.actor, "signal", subject=event, jobs=1, ids=[job_id])
    told = delivered(job_id, event, answer)
    response.status_code = 200 if told.answer == "delivered" else 202
    return told


@router.post("/{job_id}/events/{event}/link", responses=CHANGE)
def make_link(
    request: Request,
    who: Operator,
    job_id: JobId,
    event: EventName,
    wish: NewLink | None = None,
) -> EventLink:
    """Make a link by which somebody without a token can tell the job of the event, once, until it expires."""
    asked = wish or NewLink()
    with transaction() as connection:
        status = inspect.status(connection, job_id)
        if status is None:
            raise not_found("job", job_id)
        if status in ("succeeded", "failed", "cancelled"):
            raise conflict(f"job {job_id} has ended: it is {status}")
        check_body(connection, job_id, event, asked.body, given=asked.body is not None)
        control.record(connection, who.actor, "make event link", subject=event, jobs=1, ids=[job_id])
    expires = timedelta(seconds=asked.expires)
    link = event_link(job_id, event, expires=expires, body=asked.body, config=request.app.state.settings)
    return EventLink(link=link, expires_at=datetime.now(UTC) + expires)


def check_body(connection: Connection, job_id: UUID, event: str, body: Any, *, given: bool = True) -> None:
    """413, or 422 with each wrong field, where this process knows the phase that waits for the event."""
    try:
        encoded = PLAIN.encode(body)
    except ValueError as error:
        raise invalid([{"loc": ("body",), "msg": str(error)}]) from None
    if len(encoded) > BODY_LIMIT:
        raise Problem(
            413, "Too large", f"the body has {len(encoded)} bytes, the limit is {BODY_LIMIT}: send a reference"
        )
    waiting = waits.waiting_phase(connection, job_id, event) if given else None
    if waiting is None:
        return
    try:
        check_event_body(*waiting, event, encoded)
    except BadEvent as error:
        named = [(filter(None, field.split(".")), said) for field, said in error.mistakes]
        raise invalid([{"loc": ("body", *way), "msg": said} for way, said in named]) from None


def delivered(job_id: UUID, event: str, answer: str) -> Told:
    """The answer as it is sent: 404 for a job that does not exist, 409 for one that has ended or was told before."""
    if answer == "unknown_job":
        raise not_found("job", job_id)
    if answer == "final":
        raise conflict(f"job {job_id} has ended: it takes no more events")
    if answer == "used":
        raise conflict(f"job {job_id} was told of {event!r} already: a link tells once")
    return Told.model_validate({"id": job_id, "event": event, "answer": answer})
