"""Faults on request: asked for in the address itself, or laid out beforehand with ``POST /_faults``."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import asdict, dataclass, fields
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

PREFIX = "fault_"
GARBAGE = bytes((position * 197 + 31) % 256 for position in range(4096))


@dataclass(frozen=True)
class Fault:
    """What goes wrong, for requests whose path begins with ``match``.

    ``times`` limits how often (0: always), ``every`` hits each n-th matching request only; ``delay`` is in
    seconds. A fault with nothing but a delay answers late, and right.
    """

    match: str = "/"
    status: int = 0
    retry_after: str = ""
    times: int = 0
    every: int = 1
    delay: float = 0.0
    cut: bool = False
    garbage: bool = False

    @classmethod
    def read(cls, values: dict[str, Any]) -> Fault:
        """Build a fault from JSON or query values; raises ValueError naming what is wrong."""
        known = {field.name: field for field in fields(cls)}
        unknown = set(values) - set(known)
        if unknown:
            raise ValueError(f"unknown fault fields: {', '.join(sorted(unknown))}")
        return cls(**{name: _converted(type(known[name].default), value) for name, value in values.items()})


def _converted(kind: type, value: Any) -> Any:
    if kind is bool:
        return str(value).lower() in {"1", "true", "yes", "on"}
    return kind(value)


class FaultBook:
    """The faults laid out, and how often each has struck."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget every fault and every count."""
        self._faults: list[Fault] = []
        self._seen: Counter[object] = Counter()
        self._struck: Counter[object] = Counter()

    def add(self, fault: Fault) -> None:
        """Lay out one more fault; the first that matches strikes."""
        self._faults.append(fault)

    def strike(self, path: str, query: str) -> Fault | None:
        """The fault this request meets, if any; counts it."""
        asked = {name.removeprefix(PREFIX): value for name, value in parse_qsl(query) if name.startswith(PREFIX)}
        if asked:
            return self._due(f"{path}?{query}", Fault.read({"match": path, **asked}))
        for index, fault in enumerate(self._faults):
            if path.startswith(fault.match) and (hit := self._due(index, fault)):
                return hit
        return None

    def _due(self, key: object, fault: Fault) -> Fault | None:
        self._seen[key] += 1
        if fault.times and self._struck[key] >= fault.times:
            return None
        if self._seen[key] % max(fault.every, 1):
            return None
        self._struck[key] += 1
        return fault

    def routes(self) -> list[Route]:
        """``POST /_faults`` (one object or a list), ``GET /_faults``, ``DELETE /_faults``."""
        return [Route("/_faults", self._control, methods=["GET", "POST", "DELETE"])]

    async def _control(self, request: Request) -> Response:
        if request.method == "DELETE":
            self.clear()
        if request.method == "POST":
            try:
                given = await request.json()
                for values in given if isinstance(given, list) else [given]:
                    self.add(Fault.read(values))
            except (ValueError, TypeError) as error:
                return JSONResponse({"error": str(error)}, status_code=400)
        struck = [self._struck[index] for index in range(len(self._faults))]
        return JSONResponse([asdict(f) | {"struck": n} for f, n in zip(self._faults, struck, strict=True)])


class FaultMiddleware:
    """Lets a request through to the pretended system unless a fault strikes it."""

    def __init__(self, inner: ASGIApp, book: FaultBook) -> None:
        self._inner = inner
        self._book = book

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._inner if scope["type"] != "http" or scope["path"].startswith("/_") else self._met(scope)
        await answer(scope, receive, send)

    def _met(self, scope: Scope) -> ASGIApp:
        try:
            fault = self._book.strike(scope["path"], scope["query_string"].decode("latin-1"))
        except (ValueError, TypeError) as error:
            return PlainTextResponse(str(error), status_code=400)
        return self._inner if fault is None else self._spoiled(fault)

    def _spoiled(self, fault: Fault) -> ASGIApp:
        answer = _spoiled_answer(fault) or self._inner

        async def late(scope: Scope, receive: Receive, send: Send) -> None:
            await asyncio.sleep(fault.delay)
            await answer(scope, receive, send)

        return late


def _spoiled_answer(fault: Fault) -> ASGIApp | None:
    if fault.cut:
        return cut_short
    if fault.garbage:
        return Response(GARBAGE, media_type="text/html; charset=utf-8")
    if fault.status:
        headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
        return PlainTextResponse(f"fault: {fault.status}\n", fault.status, headers)
    return None


async def cut_short(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Promise a long body, send a little of it, and close the connection."""
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"100000")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"<html><head><title>cut", "more_body": True})
    # a return without the rest makes the server drop the connection
