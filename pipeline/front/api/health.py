"""Is it alive, can it work, and its numbers."""

from __future__ import annotations

from typing import Any

import pika
from fastapi import APIRouter, Request
from pika.exceptions import AMQPError
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response

from pipeline import settings
from pipeline.front.api.http.auth import Viewer
from pipeline.front.api.http.problem import Problem
from pipeline.front.api.http.responses import problems
from pipeline.store import database
from pipeline.store.migrate import missing

router = APIRouter(tags=["health"])
METRICS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus's text format"}
}


class Alive(BaseModel):
    """The process answers."""

    status: str = "ok"


class Ready(BaseModel):
    """What was looked at; each is "ok" or says what is wrong."""

    checks: dict[str, str]


@router.get("/healthz")
async def healthz() -> Alive:
    """Always 200 while the process lives: it looks at nothing else."""
    return Alive()


@router.get("/readyz", responses=problems(503))
def readyz(request: Request) -> Ready:
    """200 if PostgreSQL is there and up to date and RabbitMQ answers. Looked at once in five seconds at most."""
    checks: dict[str, str] = request.app.state.checks.get()
    if any(found != "ok" for found in checks.values()):
        raise Problem(
            503,
            "Not ready",
            "; ".join(f"{name}: {found}" for name, found in checks.items()),
            headers={"Retry-After": "5"},
            checks=checks,
        )
    return Ready(checks=checks)


@router.get("/metrics", responses={**METRICS, **problems(401, 403, 503)}, response_class=Response)
def metrics(request: Request, who: Viewer) -> Response:  # noqa: ARG001
    """The whole cluster for Prometheus, computed at most once in two seconds (see docs/metrics.md)."""
    return Response(request.app.state.metrics.get(), media_type="text/plain; version=0.0.4; charset=utf-8")


def check() -> dict[str, str]:
    """Look at PostgreSQL, its migrations and RabbitMQ."""
    return {"database": _database(), "broker": _broker()}


def _database() -> str:
    try:
        return missing(database.engine()) or "ok"
    except SQLAlchemyError:
        return "PostgreSQL does not answer"


def _broker() -> str:
    # RabbitMQ may be away: jobs are accepted all the same and sent when it is back.
    first = settings.get().rabbitmq_url.get_secret_value().split(";", maxsplit=1)[0]
    parameters = pika.URLParameters(first)
    parameters.socket_timeout = parameters.stack_timeout = parameters.blocked_connection_timeout = 3
    parameters.connection_attempts = 1
    try:
        pika.BlockingConnection(parameters).close()
    except (AMQPError, OSError):
        return "RabbitMQ does not answer"
    return "ok"
