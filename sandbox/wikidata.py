"""Wikidata's API over made-up entities, in the shapes of the real one and no kinder than it.

``wbsearchentities`` is a search for beginnings, ``list=search`` one for words, ``wbgetentities`` brings up to fifty.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from time import monotonic
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from sandbox.wikidata_answers import Refused, Store, answer, refusal
from sandbox.wikidata_clutter import entities
from sandbox.wikidata_entity import Entity

NO_AGENT = "Please set a user-agent and respect our robot policy https://w.wiki/4wJS. See also T400119."


def routes(known: Iterable[Entity] | None = None) -> list[BaseRoute]:
    """``/w/api.php``; ``/w/_arrivals``: when each of its requests came; ``/w/_lag``: that its database
    lags so many seconds, for so many requests."""
    store = _own() if known is None else Store(known)
    arrivals: deque[float] = deque(maxlen=500_000)
    lag = {"seconds": 0.0, "times": 0}

    async def api(request: Request) -> Response:
        arrivals.append(monotonic())
        if not request.headers.get("user-agent"):
            return PlainTextResponse(NO_AGENT, 403)
        question = dict(request.query_params)
        if lag["times"] and lag["seconds"] > float(question.get("maxlag", "inf")):
            lag["times"] -= 1
            return _lagging(lag["seconds"])
        try:
            return JSONResponse(answer(store, question, request.headers.get("authorization", "")))
        except Refused as error:
            return JSONResponse(refusal(error), headers={"MediaWiki-API-Error": error.code})

    async def show(request: Request) -> Response:
        if request.method == "DELETE":
            arrivals.clear()
        return JSONResponse({"arrivals": list(arrivals), "busiest_second": busiest_second(arrivals)})

    async def set_lag(request: Request) -> Response:
        lag.update(await request.json())
        return JSONResponse(lag)

    return [
        Route("/w/api.php", api),
        Route("/w/_arrivals", show, methods=["GET", "DELETE"]),
        Route("/w/_lag", set_lag, methods=["PUT"]),
    ]


def busiest_second(arrivals: deque[float]) -> int:
    """The most requests in any one second, wherever it begins."""
    most, window = 0, deque[float]()
    for moment in arrivals:
        window.append(moment)
        while moment - window[0] >= 1.0:
            window.popleft()
        most = max(most, len(window))
    return most


@lru_cache(maxsize=1)
def _own() -> Store:
    """Made before the first request, which would hold up all others meanwhile."""
    return Store(entities())


def _lagging(seconds: float) -> Response:
    error = Refused("maxlag", f"Waiting for db1: {seconds:g} seconds lagged.")
    body: dict[str, Any] = refusal(error)
    body["error"] |= {"host": "db1", "lag": seconds, "type": "db"}
    headers = {"MediaWiki-API-Error": "maxlag", "Retry-After": "5", "X-Database-Lag": f"{seconds:.0f}"}
    return JSONResponse(body, headers=headers)
