"""Pages that only a browser shows whole: framesets, and pages that scripts make."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

FRAMESET = (
    '<!DOCTYPE html><html lang="en"><head><title>Two frames</title></head>'
    '<frameset cols="*,*"><frame src="/sites/1/"><frame src="/sites/2/"></frameset></html>'
)
SHELL = (
    '<!DOCTYPE html><html lang="en"><head><title>Loading…</title>{scripts}</head>'
    '<body><noscript>Please enable JavaScript.</noscript><div id="app"></div></body></html>'
)
MENU = """
    const {dishes} = await (await fetch("/scripted/menu.json")).json();
    document.title = "Menu of the day";
    document.getElementById("app").innerHTML = dishes.map(dish => `<h2>${dish}</h2>`).join("")
        + '<p><a href="/sites/1/">Where we are</a></p>';
"""
# What it reaches of the machine that renders it, it shows.
SPY = """
    const found = [];
    for (const target of {targets}) {{
        try {{ found.push(await (await fetch(target, {{mode: "no-cors"}})).text() || "opaque"); }}
        catch (error) {{ found.push("refused"); }}
    }}
    try {{ await new Promise((yes, no) => {{
        const socket = new WebSocket({socket!r}); socket.onopen = yes; socket.onerror = no; }});
        found.push("socket"); }}
    catch (error) {{ found.push("no socket"); }}
    document.getElementById("app").innerHTML = "<h1>Spy</h1><p>" + found.join(", ") + "</p>";
"""
POLL = """
    document.getElementById("app").innerHTML = "<h1>Live</h1>";
    setInterval(() => fetch("/scripted/menu.json?" + Math.random()), 50);
"""
AWAY = "const to = {to!r}; location.href = to;"
BUSY = 'document.title = "Busy"; document.getElementById("app").textContent = "for ever"; while (true) {}'
GREEDY = "const kept = []; while (true) kept.push(new Array(1e6).fill(Math.random()));"


def routes() -> list[BaseRoute]:
    """``/frames``, and ``/scripted``: one that reads well, and others that do not."""
    return [
        Route("/frames", _frames),
        Route("/scripted", _menu),
        Route("/scripted/menu.json", _dishes),
        Route("/scripted/menu.js", _script),
        Route("/scripted/spy", _spy),
        Route("/scripted/poll", _poll),
        Route("/scripted/away", _away),
        Route("/scripted/busy", _busy),
        Route("/scripted/greedy", _greedy),
    ]


def _html(text: str) -> Response:
    return Response(text, media_type="text/html")


def _shell(script: str) -> Response:
    return _html(SHELL.format(scripts=f'<script type="module">{script}</script>'))


async def _frames(_: Request) -> Response:
    return _html(FRAMESET)


async def _menu(_: Request) -> Response:
    return _html(SHELL.format(scripts='<script type="module" src="/scripted/menu.js"></script>'))


async def _script(_: Request) -> Response:
    return Response(MENU, media_type="text/javascript")


async def _dishes(_: Request) -> JSONResponse:
    return JSONResponse({"dishes": ["Soup", "Dessert"]})


async def _spy(request: Request) -> Response:
    targets = [
        *request.query_params.getlist("target"),
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
    ]
    here = f"ws://{request.url.hostname}:{request.url.port}/"
    return _shell(SPY.format(targets=targets, socket=here))


async def _poll(_: Request) -> Response:
    return _shell(POLL)


async def _away(request: Request) -> Response:
    return _shell(AWAY.format(to=request.query_params.get("to", "/")))


async def _busy(_: Request) -> Response:
    return _shell(BUSY)


async def _greedy(_: Request) -> Response:
    return _shell(GREEDY)
