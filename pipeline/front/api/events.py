"""Statistics as they change: server-sent events for the dashboard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any

from fastapi import APIRouter, Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from pipeline.front.api.http.auth import Viewer
from pipeline.front.api.http.problem import Problem
from pipeline.front.api.http.responses import problems

router = APIRouter(prefix="/v1/events", tags=["overview"])
LISTENERS = 32
# A browser comes back by itself; its session is looked at again then.
LONGEST = 900.0
EVERY = 1.0
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "`event: stats`"}
}


@router.get("", responses={**STREAM, **problems(401, 403, 429, 503)}, response_class=StreamingResponse)
async def events(request: Request, who: Viewer) -> StreamingResponse:  # noqa: ARG001
    """The answer of GET /v1/stats once a second; `event: away` while PostgreSQL does not answer."""
    state = request.app.state
    if state.listeners >= LISTENERS:
        raise Problem(429, "Too many listeners", f"{LISTENERS} are connected already", headers={"Retry-After": "30"})
    return StreamingResponse(_stream(state), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _stream(state: Any) -> AsyncIterator[str]:
    state.listeners += 1
    try:
        end = monotonic() + LONGEST
        yield "retry: 3000\n\n"
        while monotonic() < end and not state.stopping.is_set():
            yield await _event(state)
            await asyncio.sleep(EVERY)
    finally:
        state.listeners -= 1


async def _event(state: Any) -> str:
    try:
        found = await run_in_threadpool(state.stats.get)
    except SQLAlchemyError:
        return "event: away\ndata: {}\n\n"
    return f"event: stats\ndata: {found.model_dump_json()}\n\n"
