"""Every error of the HTTP door is an RFC 9457 problem: what happened, to which thing, and what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MEDIA = "application/problem+json"
LONGEST = 2000


class Problem(Exception):
    """Raise it anywhere in an endpoint. ``extras`` become members of the JSON beside title and detail.

    >>> raise Problem(402, "Not paid", "order 17 has not been paid", order=17)
    Traceback (most recent call last):
    pipeline.front.api.http.problem.Problem: order 17 has not been paid
    """

    def __init__(
        self, status: int, title: str, detail: str = "", *, headers: Mapping[str, str] | None = None, **extras: Any
    ) -> None:
        super().__init__(detail or title)
        self.status = status
        self.title = title
        self.detail = detail[:LONGEST]
        self.headers = dict(headers or {})
        self.extras = extras


# What stands behind it is enough to tell a job of an event.
LINKS = "/v1/events/"


def path_of(request: Request) -> str:
    """The request's path as it may be logged and repeated."""
    path = request.url.path
    return f"{LINKS}…" if path.startswith(LINKS) else path[:LONGEST]


def not_found(thing: str, name: object) -> Problem:
    """404, naming what was looked for.

    >>> raise not_found("order", 17)
    Traceback (most recent call last):
    pipeline.front.api.http.problem.Problem: there is no order 17; was it deleted or pruned?
    """
    return Problem(404, f"No such {thing}", f"there is no {thing} {name}; was it deleted or pruned?")


def conflict(detail: str) -> Problem:
    """409: the thing is in a state in which this cannot be done.

    >>> conflict("order 17 has been sent").status
    409
    """
    return Problem(409, "Not possible now", detail)


def answer(request: Request, problem: Problem) -> Response:
    """The problem as a response; the trace id leads to the server's log."""
    from starlette.responses import Response

    content: dict[str, Any] = {"type": "about:blank", "title": problem.title, "status": problem.status}
    if problem.detail:
        content["detail"] = problem.detail
    content |= {
        "instance": path_of(request),
        "trace_id": getattr(request.state, "trace_id", ""),
        **problem.extras,
    }
    # Escaped to ASCII: what is said about a hostile input may hold half a surrogate pair.
    return Response(json.dumps(content), problem.status, problem.headers, MEDIA)


def from_status(status: int, detail: object, headers: Mapping[str, str] | None) -> Problem:
    """What Starlette and FastAPI refuse by themselves: unknown paths, wrong methods."""
    phrase = HTTPStatus(status).phrase
    return Problem(status, phrase, "" if detail == phrase else str(detail), headers=headers)


def invalid(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """422 with each wrong field by name. The values themselves are not repeated: they may be secret or huge.

    >>> invalid([{"loc": ("body", "item"), "msg": "is too long"}]).detail
    'body.item: is too long'
    """
    found = [
        {"where": ".".join(str(part)[:80] for part in error["loc"][:8]), "what": str(error["msg"])[:300]}
        for error in errors[:20]
    ]
    said = "; ".join(f"{item['where']}: {item['what']}" for item in found)
    return Problem(422, "Not valid", said, errors=found)
