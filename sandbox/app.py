"""The sandbox put together: one module per pretended system, faults and counters around all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from sandbox import chat, gemini, hostile, market, pages, registry, scripted, wikidata
from sandbox.faults import FaultBook, FaultMiddleware
from sandbox.stats import Stats, StatsMiddleware
from sandbox.wikidata_entity import Entity

# A further system is one more module with a ``routes()`` function, named here.
SYSTEMS: tuple[Callable[[], list[BaseRoute]], ...] = (
    pages.routes,
    hostile.routes,
    scripted.routes,
    chat.routes,
    registry.routes,
    gemini.routes,
    market.routes,
)


def app(known: Iterable[Entity] | None = None) -> ASGIApp:
    """A fresh sandbox with its own faults and counters; ``known`` is what its Wikidata holds instead of its own."""
    book, stats = FaultBook(), Stats()
    routes = [route for system in SYSTEMS for route in system()] + wikidata.routes(known)
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
