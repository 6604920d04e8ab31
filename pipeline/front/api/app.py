"""The HTTP application: routers, errors, and what stands before them."""

from __future__ import annotations

from threading import Event
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware.gzip import GZipMiddleware

from pipeline.declare.extension import extensions, load
from pipeline.front.api import (
    dead,
    events,
    health,
    jobs,
    many,
    overview,
    results,
    schedules,
    session,
    stats,
)
from pipeline.front.api.control import audit, bulk, keys, limits, phases
from pipeline.front.api.control import workers as control_workers
from pipeline.front.api.http import errors
from pipeline.front.api.http.guessing import Guessing
from pipeline.front.api.http.remember import Remembered
from pipeline.front.api.http.responses import SCHEMA, complete
from pipeline.front.api.http.shield import Shield
from pipeline.front.api.http.tokens import parse_tokens
from pipeline.front.api.waits import links, signals
from pipeline.front.api.workflows import history as workflow_history
from pipeline.front.api.workflows import routes as workflows
from pipeline.front.dashboard import routes as dashboard
from pipeline.front.database import transaction
from pipeline.observe import metrics
from pipeline.settings import Settings
from pipeline.store.gateway import reading
from pipeline.store.inspect.health import versions

# Before the jobs, whose ids are places in the same paths.
PARTS = (
    *(many, jobs, results, signals, workflows, workflow_history, schedules, dead, overview),
    *(phases, limits, control_workers, audit, bulk, keys, events, links, session, health),
)


def create_app(settings: Settings) -> FastAPI:
    """The application. It opens no connection by itself: each request finds its way to PostgreSQL.

    Import ``pipeline.actors`` before: the workflows say how to read what they stored.
    """
    app = FastAPI(title="pipeline", version="1", docs_url=None, redoc_url=None, openapi_url="/v1/openapi.json")
    app.state.settings = settings
    app.state.tokens = parse_tokens(settings.api_tokens)
    app.state.guessing = Guessing()
    app.state.stats = Remembered(stats.compute, 1)
    app.state.checks = Remembered(health.check, 5)
    app.state.metrics = Remembered(_metrics, 2)
    app.state.listeners = 0
    app.state.waiting = 0
    app.state.stopping = Event()
    for part in PARTS:
        app.include_router(part.router)
    for extension in extensions():
        for routes in extension.routes:
            app.include_router(load(routes))
    dashboard.mount(app)
    errors.install(app)
    # Not the stream of events: that is sent piece by piece.
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)
    app.add_middleware(Shield, max_body=settings.api_max_body, loopback_only=app.state.tokens is None)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign] # FastAPI's documented way to extend it
    return app


def _metrics() -> bytes:
    with transaction() as connection:
        cluster = metrics.Cluster(
            phases=reading.phases(connection, metrics.CAP),
            workers=reading.workers(connection),
            rate_limits=reading.rate_limits(connection),
            relay_lag=reading.relay_lag(connection),
            counters=reading.counters(connection),
            signals=reading.signals(connection),
            leaders=reading.leaders(connection),
            versions=versions(connection),
        )
        return metrics.render(cluster, connection)


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schema.setdefault("components", {}).setdefault("schemas", {})["Problem"] = SCHEMA
        complete(schema)
        workflows.describe_bodies(schema)
        app.openapi_schema = schema
    return app.openapi_schema
