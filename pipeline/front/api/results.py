"""A job's result, for clients that wait for it."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from pipeline.declare.states import Status
from pipeline.front.api.http.auth import Viewer
from pipeline.front.api.http.errors import away
from pipeline.front.api.http.fields import JobId
from pipeline.front.api.http.problem import Problem, not_found
from pipeline.front.api.http.responses import problems
from pipeline.front.api.models import JobResult, Unfinished
from pipeline.journey.ends import ends
from pipeline.store.gateway.results import JobStatus

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
# The server answers 500 connections at once; the others are for those who do not wait.
MOST = 250
# How soon a client that went away, or a server that stops, is noticed.
SLICE = 0.5
# How long PostgreSQL may take to say how the job is.
ANSWER = 5.0
RESPONSES: dict[int | str, dict[str, Any]] = {
    202: {"model": Unfinished, "description": "not finished yet: ask again after Retry-After"}
}


@router.get(
    "/{job_id}/result", response_model=JobResult, responses={**RESPONSES, **problems(401, 403, 404, 409, 422, 503)}
)
async def result(
    request: Request,
    who: Viewer,  # noqa: ARG001  the dependency is the check
    job_id: JobId,
    wait: Annotated[float, Query(ge=0, le=60, description="seconds to wait for the end of the job")] = 0,
) -> Response:
    """What the job's last phase returned, whole. 202 if the job has not finished within `wait` seconds.

    409 if it failed or was cancelled. Ask again after a 202 or when the connection breaks: nothing is lost by it.
    """
    found = await _look(job_id)
    if not found.is_final and wait:
        found = await _wait(request, job_id, wait) or await _look(job_id)
    return _answer(found)


async def _look(job: UUID) -> JobStatus:
    try:
        found = await asyncio.wait_for(asyncio.wrap_future(ends().wait(job, "look", lambda _: True)), ANSWER)
    except TimeoutError:
        raise away() from None
    if found is None:
        raise not_found("job", job)
    return found


async def _wait(request: Request, job: UUID, seconds: float) -> JobStatus | None:
    """How the job ended. None if it has not, or whoever waits should ask again. Holds no thread and no connection."""
    state = request.app.state
    if state.waiting >= MOST:
        return None
    state.waiting += 1
    ended = asyncio.wrap_future(ends().wait(job, "end", lambda status: status is None or status.is_final))
    try:
        until = monotonic() + seconds
        while (left := until - monotonic()) > 0 and not state.stopping.is_set() and not await request.is_disconnected():
            if (await asyncio.wait({ended}, timeout=min(left, SLICE)))[0]:
                return ended.result()
        return None
    finally:
        ended.cancel()
        state.waiting -= 1


def _answer(found: JobStatus) -> Response:
    if found.state is Status.SUCCEEDED:
        # Put together as text: the numbers in a result can be of any size.
        head = JobResult(id=found.id, status=found.state, result=None).model_dump_json(exclude={"result"})
        return Response(f'{head[:-1]},"result":{found.result or "null"}}}', media_type="application/json")
    if found.is_final:
        title = "The job failed" if found.state is Status.FAILED else "The job was cancelled"
        raise Problem(409, title, found.error or "", state=found.state, phase=found.phase, error=found.error)
    left = Unfinished(
        id=found.id,
        status=found.state,
        phase=found.phase,
        attempts=found.attempts,
        wait_reason=found.wait_reason,
        due_at=found.due_at,
        progress=found.progress,
    )
    return Response(left.model_dump_json(), 202, {"Retry-After": "1"}, "application/json")
