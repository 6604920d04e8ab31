"""The bad neighbourhood of the pretended web: loops, bombs, drips, broken pages."""

from __future__ import annotations

import asyncio
import functools
import gzip
import zlib
from collections.abc import AsyncIterator, Callable

import brotli
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from sandbox.faults import GARBAGE, cut_short
from sandbox.pages import page
from sandbox.sites import site

MEBIBYTE = 1024 * 1024
BROKEN = (
    "<html><head><title>Broken & proud</title><body><h1>Unclosed <b>heading<p>First <i>paragraph<p>Second</i> one"
    "<table><tr><td>cell<td>other</table></div></span><a href='/sites/1/>never closed <a href=about>about</a>"
    "<!-- an open comment <p>and &nosuchentity; &#x110000; <script>var x = '</p>';</script> the end"
)
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": functools.partial(gzip.compress, compresslevel=1),
    "deflate": functools.partial(zlib.compress, level=1),
    "br": functools.partial(brotli.compress, quality=1),
}


def routes() -> list[BaseRoute]:
    """Everything a fetcher must survive."""
    return [
        Route("/redirect/{hops:int}", _redirect),
        Route("/redirect-to", _redirect_to),
        Route("/loop/{side}", _loop),
        Route("/huge", _huge),
        Route("/bomb/{coding}", _bomb),
        Route("/slow", _slow),
        Route("/drip", _drip),
        Route("/cut", _Cut()),
        Route("/garbage", _garbage),
        Route("/broken", _broken),
        Route("/deep", _deep),
        Route("/empty", _empty),
        Route("/picture.png", _picture),
        Route("/status/{code:int}", _status),
    ]


async def _redirect(request: Request) -> Response:
    hops = request.path_params["hops"]
    return RedirectResponse(f"/redirect/{hops - 1}" if hops > 1 else "/sites/1/", status_code=302)


async def _redirect_to(request: Request) -> Response:
    # a plain Response, so that the address stays exactly as it was asked for
    return Response(status_code=302, headers={"Location": request.query_params.get("url", "/")})


async def _loop(request: Request) -> Response:
    return RedirectResponse("/loop/b" if request.path_params["side"] == "a" else "/loop/a", status_code=301)


async def _huge(request: Request) -> Response:
    mebibytes = int(request.query_params.get("mb", "20"))

    async def body() -> AsyncIterator[bytes]:
        for _ in range(mebibytes):
            yield b"<p>more</p>" * (MEBIBYTE // 11)

    return StreamingResponse(body(), media_type="text/html")


@functools.cache
def _compressed_zeros(coding: str, mebibytes: int) -> bytes:
    return bytes(COMPRESSORS[coding](b"\0" * (mebibytes * MEBIBYTE)))


async def _bomb(request: Request) -> Response:
    coding = request.path_params["coding"]
    if coding not in COMPRESSORS:
        return PlainTextResponse("no such coding\n", status_code=404)
    headers = {"Content-Encoding": coding, "Content-Type": "text/html"}
    return Response(await asyncio.to_thread(_compressed_zeros, coding, 64), headers=headers)


async def _slow(request: Request) -> Response:
    await asyncio.sleep(float(request.query_params.get("seconds", "1")))
    return Response(page(site(0)), media_type="text/html")


async def _drip(request: Request) -> Response:
    pause = float(request.query_params.get("pause", "0.2"))

    async def body() -> AsyncIterator[bytes]:
        for _ in range(10_000):
            yield b"."
            await asyncio.sleep(pause)

    return StreamingResponse(body(), media_type="text/html")


class _Cut:
    """An object, because a route takes a function for one that returns a whole response."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await cut_short(scope, receive, send)


async def _garbage(_: Request) -> Response:
    return Response(GARBAGE, media_type="text/html; charset=utf-8")


async def _broken(_: Request) -> Response:
    return Response(BROKEN, media_type="text/html")


async def _deep(_: Request) -> Response:
    return Response("<title>Deep</title><p>top</p>" + "<div>" * 200_000 + "bottom", media_type="text/html")


async def _empty(_: Request) -> Response:
    return Response("", media_type="text/html")


async def _picture(_: Request) -> Response:
    return Response(b"\x89PNG\r\n\x1a\n" + GARBAGE, media_type="image/png")


async def _status(request: Request) -> Response:
    code = request.path_params["code"]
    return PlainTextResponse(f"status {code}\n", status_code=code)
