"""The open connections of one client: one that is idle is used again, otherwise a new one is made.

httpcore's own pool looks through all its connections at every request, and drops those that become idle while there
are more than its limit in all: hundreds of coroutines would spend their time there, and connect anew each time.
"""

from __future__ import annotations

from ssl import SSLContext

import httpcore

KEPT_SECONDS = 3.0

Origin = tuple[bytes, bytes, int]


class Connections:
    """By origin. How many are in use is not bounded here: the process's places and the phases' pools do that."""

    def __init__(self, tls: SSLContext, backend: httpcore.AsyncNetworkBackend) -> None:
        self._tls = tls
        self._backend = backend
        # The one that has been idle for longest comes first.
        self._idle: dict[httpcore.AsyncHTTPConnection, Origin] = {}
        self._by_origin: dict[Origin, list[httpcore.AsyncHTTPConnection]] = {}

    async def send(self, request: httpcore.Request) -> tuple[httpcore.Response, httpcore.AsyncHTTPConnection]:
        """The answer, and the connection to release once it was read."""
        connection = await self._idle_one(_origin(request)) or self._new(request)
        return await connection.handle_async_request(request), connection

    async def release(self, connection: httpcore.AsyncHTTPConnection, request: httpcore.Request) -> None:
        """Keep it for the next request, or close it if its answer was not read to the end."""
        if not connection.is_idle():
            await connection.aclose()
            return
        origin = _origin(request)
        self._idle[connection] = origin
        self._by_origin.setdefault(origin, []).append(connection)
        await self._close_expired()

    async def close(self) -> None:
        """Close those that are idle; one in use closes with its answer."""
        idle = list(self._idle)
        self._idle.clear()
        self._by_origin.clear()
        for connection in idle:
            await connection.aclose()

    def _new(self, request: httpcore.Request) -> httpcore.AsyncHTTPConnection:
        return httpcore.AsyncHTTPConnection(
            request.url.origin,
            ssl_context=self._tls,
            keepalive_expiry=KEPT_SECONDS,
            network_backend=self._backend,
        )

    async def _idle_one(self, origin: Origin) -> httpcore.AsyncHTTPConnection | None:
        while origin in self._by_origin:
            connection = self._by_origin[origin][-1]
            self._take(connection)
            # Also if its server has closed it.
            if not connection.has_expired():
                return connection
            await connection.aclose()
        return None

    async def _close_expired(self) -> None:
        while self._idle:
            oldest = next(iter(self._idle))
            if not oldest.has_expired():
                return
            self._take(oldest)
            await oldest.aclose()

    def _take(self, connection: httpcore.AsyncHTTPConnection) -> None:
        origin = self._idle.pop(connection)
        self._by_origin[origin].remove(connection)
        if not self._by_origin[origin]:
            del self._by_origin[origin]


def _origin(request: httpcore.Request) -> Origin:
    origin = request.url.origin
    return origin.scheme, origin.host, origin.port
