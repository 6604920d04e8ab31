"""Where links to events lead: a page that asks, and a POST that tells the job. Who has the link needs no token."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import JSONResponse, Response

from pipeline.declare.errors import BadInput
from pipeline.declare.job import PLAIN
from pipeline.declare.waits.links import LONGEST_TOKEN, BadLink, ExpiredLink, Link
from pipeline.event_links import read_token
from pipeline.front.api.http.fields import is_json
from pipeline.front.api.http.problem import MEDIA, Problem, invalid
from pipeline.front.api.http.responses import REASONS
from pipeline.front.api.waits.page import page, wants_page
from pipeline.front.api.waits.signals import Told, check_body, delivered
from pipeline.front.database import transaction
from pipeline.observe import logs
from pipeline.store.control import actions as control
from pipeline.store.control.actions import Actor
from pipeline.store.gateway import callers, client

log = logs.get("pipeline.api")
router = APIRouter(prefix="/v1/events", tags=["events of jobs"])
PAGE = {"text/html": {"schema": {"type": "string"}}}
TOLD = {**PAGE, "application/json": {"schema": {"$ref": "#/components/schemas/Told"}}}
GONE = "the link has expired"
# A person gets each answer as a page.
WRONG: dict[int | str, dict[str, Any]] = {
    status: {
        "description": REASONS.get(status, GONE),
        "content": {**PAGE, MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status in (404, 409, 410, 413, 422, 503)
}
ASKED: dict[int | str, dict[str, Any]] = {200: {"description": "the page that asks", "content": PAGE}}
TAKEN: dict[int | str, dict[str, Any]] = {
    200: {"description": "the job waited for it and continues", "content": TOLD},
    202: {"description": "kept until the job waits for it", "content": TOLD},
}


Token = Annotated[str, Path(max_length=LONGEST_TOKEN, description="the end of a link that job.event_link made")]


async def _content(request: Request) -> bytes:
    """What another system sends; a browser's button sends nothing."""
    is_data = request.headers.get("content-type", "").partition(";")[0].strip() == "application/json"
    return await request.body() if is_data else b""


@router.get("/{token}", response_class=Response, responses={**ASKED, **WRONG})
def ask(request: Request, token: Token) -> Response:
    """A page that says what the link tells, with a button. It changes nothing, however often it is looked at."""
    try:
        link = _read(request, token)
        with transaction() as connection:
            state = callers.run(connection, client.link_state(link.job, link.event, link.fence))
        if state != "open":
            delivered(link.job, link.event, state)
    except Problem as problem:
        return _refused(request, problem)
    until = f"{datetime.fromtimestamp(link.expires, UTC):%F %H:%M} UTC"
    texts = (f"This link tells job {link.job} of the event “{link.event}”.", f"It works once, until {until}.")
    return page(200, f"Confirm “{link.event}”?", *texts, shown=link.body, button="Confirm")


@router.post(
    "/{token}",
    response_class=Response,
    responses={**TAKEN, **WRONG},
    openapi_extra={"requestBody": {"content": {"application/json": {"schema": {}}}}},
)
def tell(request: Request, token: Token, content: Annotated[bytes, Depends(_content)]) -> Response:
    """Tell the job of the link's event, once. JSON that is sent is the event's body, unless the link has its own."""
    try:
        link = _read(request, token)
        told = _tell(link, _body(link, content), request.client.host if request.client else None)
    except Problem as problem:
        return _refused(request, problem)
    except BadInput as error:
        return _refused(request, Problem(422, "Not possible", str(error)))
    status = 200 if told.answer == "delivered" else 202
    if not wants_page(request):
        return JSONResponse(told.model_dump(mode="json"), status)
    text = {"delivered": "The job continues.", "kept": "The job will find it when it waits for it."}[told.answer]
    return page(status, "Thank you.", text)


def _read(request: Request, token: str) -> Link:
    try:
        return read_token(request.app.state.settings, token)
    except ExpiredLink as error:
        raise Problem(410, "Expired", str(error)) from None
    except BadInput as error:
        if not isinstance(error, BadLink):
            log.warning("a link to an event cannot be read", error=str(error))
        raise Problem(404, "No such link", "the link is not valid: was it copied whole?") from None


def _body(link: Link, content: bytes) -> Any:
    if link.body is not None:
        if content.strip():
            raise invalid([{"loc": ("body",), "msg": "the link itself says what is told: send no body"}])
        return PLAIN.decode(link.body)
    try:
        return is_json(PLAIN.decode(content)) if content.strip() else None
    except (ValueError, RecursionError) as error:
        raise invalid([{"loc": ("body",), "msg": f"it is not valid JSON: {error}"}]) from None


def _tell(link: Link, body: Any, origin: str | None) -> Told:
    with transaction() as connection:
        check_body(connection, link.job, link.event, body)
        encoded = PLAIN.encode(body).decode()
        answer = callers.run(connection, client.signal_by_link(link.job, link.event, encoded, link.fence))
        who = Actor("the holder of a link", "api", origin)
        control.record(connection, who, "signal", subject=link.event, jobs=1, ids=[link.job])
        # Raised inside the block: what was refused is rolled back.
        return delivered(link.job, link.event, answer)


TITLES = {404: "This link is not valid", 410: "This link has expired"}


def _refused(request: Request, problem: Problem) -> Response:
    """The problem as a page for a person; a program gets it as all others."""
    if not wants_page(request):
        raise problem
    words = {404: "Ask for a new one; or was it not copied whole?", 409: problem.detail, 410: "Ask for a new one."}
    return page(problem.status, TITLES.get(problem.status, "Not possible"), words.get(problem.status, problem.detail))
