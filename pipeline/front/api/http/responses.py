"""How the problems of an endpoint are documented in OpenAPI."""

from __future__ import annotations

from typing import Any

from pipeline.front.api.http.problem import MEDIA

REASONS = {
    400: "the request is not well-formed",
    401: "no valid token or session",
    403: "the role, the host or the missing X-Pipeline header does not allow this",
    404: "there is no such thing",
    409: "the thing is in a state in which this cannot be done, or another transaction holds it",
    413: "the request is too large",
    415: "the content type is not supported",
    422: "a field is wrong; each is named",
    429: "too many at once; Retry-After says when",
    503: "PostgreSQL does not answer; Retry-After says when to try again",
}

SCHEMA: dict[str, Any] = {
    "title": "Problem",
    "type": "object",
    "required": ["type", "title", "status", "trace_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "what happened, to which thing, and what to do"},
        "instance": {"type": "string"},
        "trace_id": {"type": "string", "description": "find it in the server's log"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"where": {"type": "string"}, "what": {"type": "string"}},
            },
        },
    },
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For ``responses=`` of a router or an endpoint.

    >>> @router.delete("/v1/parcels/{number}", responses=problems(404, 409))
    ... def remove(_: Operator, number: int) -> None:
    ...     raise conflict(f"parcel {number} has been sent")
    """
    schema = {"schema": {"$ref": "#/components/schemas/Problem"}}
    # Where a wrong token is refused, too many of them are.
    told = sorted({*statuses, 429}) if 401 in statuses else statuses
    return {status: {"description": REASONS[status], "content": {MEDIA: schema}} for status in told}


def complete(schema: dict[str, Any]) -> None:
    """Document what stands before every endpoint: the host check, and the limits of a body."""
    for operations in schema["paths"].values():
        for operation in operations.values():
            usual = (400, 403, 413, 422) if "requestBody" in operation else (403,)
            for status, found in problems(*usual).items():
                operation["responses"].setdefault(str(status), found)


PROBLEMS = problems(*REASONS)
