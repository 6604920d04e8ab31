"""What stands before every endpoint: the host check, the size limit, security headers, and the last catch."""

from __future__ import annotations

import re
import secrets
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeline.front.api.http.problem import Problem, answer, path_of
from pipeline.observe import logs

log = logs.get("pipeline.api")

TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}


class Shield:
    """Endpoints may set a header of HEADERS themselves (the dashboard has its own policy); otherwise these hold."""

    def __init__(self, app: ASGIApp, *, max_body: int, loopback_only: bool) -> None:
        self._app = app
        self._max_body = max_body
        self._loopback_only = loopback_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        request.state.trace_id = trace_id(request.headers)
        request.state.meter = Meter(receive, request.headers.get("content-length", ""), self._max_body)
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                _protect(MutableHeaders(scope=message), request.state.trace_id)
            await send(message)

        try:
            self._admit(request)
            await self._app(scope, request.state.meter, guarded)
        except Exception as error:
            if started:
                raise
            await answer(request, _as_problem(error, request))(scope, receive, guarded)

    def _admit(self, request: Request) -> None:
        if self._loopback_only and not is_loopback(host_of(request.headers.get("host", ""))):
            raise Problem(403, "Wrong host", "without PIPELINE_API_TOKENS only requests to localhost are answered")


class Meter:
    """Counts the body while it streams in, because a Content-Length may be missing or a lie."""

    def __init__(self, receive: Receive, declared: str, limit: int) -> None:
        self._receive = receive
        self._declared = int(declared[:18]) if declared.isascii() and declared.isdigit() else 0
        self._seen = 0
        self.limit = limit

    async def __call__(self) -> Message:
        if self._declared > self.limit:
            raise self._too_large()
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        if self._seen > self.limit:
            raise self._too_large()
        return message

    def _too_large(self) -> HTTPException:
        # FastAPI turns any other exception that comes up while it reads a body into a 400.
        detail = f"the body is larger than {self.limit} bytes; send a reference to the data instead"
        return HTTPException(413, detail, headers={"Connection": "close"})


def allow_body(request: Request, most: int) -> None:
    """Let this request bring up to ``most`` bytes: for an endpoint that reads ``request.stream()`` piece by piece.

    >>> @router.put("/v1/parcels/picture")
    ... async def picture(_: Operator, request: Request) -> int:
    ...     allow_body(request, 10_000_000)
    ...     return len(await request.body())
    """
    meter: Meter = request.state.meter
    meter.limit = most


def trace_id(headers: Headers) -> str:
    """The caller's trace, or a new one: every answer and every line of the log can be found by it."""
    found = TRACEPARENT.fullmatch(headers.get("traceparent", ""))
    return found[1] if found else secrets.token_hex(16)


def host_of(header: str) -> str:
    """The name in a Host header, without the port."""
    return header[1:].partition("]")[0] if header.startswith("[") else header.partition(":")[0]


def is_loopback(host: str) -> bool:
    """Whether the name or address can only mean this machine."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _protect(headers: MutableHeaders, trace: str) -> None:
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    headers["X-Trace-Id"] = trace


def _as_problem(error: Exception, request: Request) -> Problem:
    if isinstance(error, Problem):
        return error
    log.error("an endpoint failed", path=path_of(request), trace_id=request.state.trace_id, exc_info=error)
    return Problem(500, "Internal error", "the server's log has the details under this trace id")
