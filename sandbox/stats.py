"""How often the sandbox was asked what: the far side's view of a run."""

from __future__ import annotations

from collections import Counter, deque
from time import monotonic
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Stats:
    """Counters by path and by status, and the most requests that were open at once."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Start counting anew; requests still open stay open."""
        self.paths: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.arrivals: deque[tuple[float, str]] = deque(maxlen=1000)
        self.open = 0
        self.most_open = 0

    def snapshot(self) -> dict[str, Any]:
        """Everything counted so far, ready for JSON."""
        return {
            "requests": sum(self.paths.values()),
            "paths": dict(self.paths),
            "statuses": dict(self.statuses),
            "most_open": self.most_open,
        }

    def routes(self) -> list[Route]:
        """``GET /_stats``, and ``GET /_arrivals``: when each of the last thousand came, in seconds, and for what."""

        async def show(_: Request) -> JSONResponse:
            return JSONResponse(self.snapshot())

        async def when(_: Request) -> JSONResponse:
            return JSONResponse(list(self.arrivals))

        return [Route("/_stats", show), Route("/_arrivals", when)]


class StatsMiddleware:
    """Counts every request but the sandbox's own under ``/_``."""

    def __init__(self, inner: ASGIApp, stats: Stats) -> None:
        self._inner = inner
        self._stats = stats

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/_"):
            return await self._inner(scope, receive, send)
        stats = self._stats
        stats.paths[scope["path"]] += 1
        stats.arrivals.append((monotonic(), scope["path"]))
        stats.open += 1
        stats.most_open = max(stats.most_open, stats.open)

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                stats.statuses[str(message["status"])] += 1
            await send(message)

        try:
            await self._inner(scope, receive, counted)
        finally:
            stats.open = max(stats.open - 1, 0)
