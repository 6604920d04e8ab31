"""The sandbox put together: one module per pretended system, faults and counters around all of them."""

from __future__ import annotations

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from sandbox import chat, gemini, hostile, market, pages, registry, wikidata
from sandbox.faults import FaultBook, FaultMiddleware
from sandbox.stats import Stats, StatsMiddleware

# A further system is one more module with a ``routes()`` function, named here.
SYSTEMS: tuple[Callable[[], list[BaseRoute]], ...] = (
    pages.routes,
    hostile.routes,
    chat.routes,
    registry.routes,
    gemini.routes,
    wikidata.routes,
    market.routes,
)


def app() -> ASGIApp:
    """A fresh sandbox with its own faults and counters."""
    book, stats = FaultBook(), Stats()
    routes = [route for system in SYSTEMS for route in system()]
    routes += [*book.routes(), *stats.routes(), _reset_route(book, stats), Route("/_health", _health)]
    inner = Starlette(routes=routes)
    return StatsMiddleware(FaultMiddleware(inner, book), stats)


async def _health(_: Request) -> JSONResponse:
    return JSONResponse({"ok": True})


def _reset_route(book: FaultBook, stats: Stats) -> Route:
    async def reset(_: Request) -> JSONResponse:
        book.clear()
        stats.clear()
        return JSONResponse({"reset": True})

    return Route("/_reset", reset, methods=["POST"])
