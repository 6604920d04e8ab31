"""The pretended web: ``/sites/{n}/`` in several languages and encodings, and ``/robots.txt``."""

from __future__ import annotations

import codecs
import json

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from sandbox.sites import Site, site

ROBOTS = """User-agent: *
Disallow: /private/
Allow: /

User-agent: banned-bot
Disallow: /

User-agent: patient-bot
Crawl-delay: 1

User-agent: sleepy-bot
Crawl-delay: 3600
"""


def routes() -> list[BaseRoute]:
    """Pages of the sites, a page that robots may not read, and the robots file."""
    return [
        Route("/sites/{number:int}/", _home),
        Route("/sites/{number:int}/{section}", _section),
        Route("/private/{rest:path}", _private),
        Route("/robots.txt", _robots),
    ]


async def _home(request: Request) -> Response:
    return _answer(site(request.path_params["number"]), "")


async def _section(request: Request) -> Response:
    section = request.path_params["section"]
    if section not in {"about", "offer"}:
        return PlainTextResponse("no such page\n", status_code=404)
    return _answer(site(request.path_params["number"]), section)


async def _private(_: Request) -> Response:
    return Response("<title>Members only</title><p>Not for robots.", media_type="text/html")


async def _robots(_: Request) -> Response:
    return PlainTextResponse(ROBOTS)


def _answer(shown: Site, section: str) -> Response:
    tongue = shown.tongue
    content_type = "text/html"
    if tongue.declared == "header":
        content_type += f"; charset={tongue.encoding}"
    body = page(shown, section).encode(tongue.encoding, "xmlcharrefreplace")
    if tongue.declared == "bom":
        body = codecs.BOM_UTF16_LE + page(shown, section).encode("utf-16-le")
    # set as a header, because a media type given to Response would get a charset added
    return Response(body, headers={"Content-Type": content_type})


def page(shown: Site, section: str = "") -> str:
    """The HTML of one page of a site, before it is encoded."""
    return f"""<!DOCTYPE html>
<html lang="{shown.tongue.language}">
<head>{_head(shown)}</head>
<body>
<nav><a href="/sites/{shown.number}/">home</a> <a href="about">about</a> <a href="offer">offer</a></nav>
<main>{_main(shown, section)}</main>
<footer><a href="https://www.example.org/partner/{shown.number}">partner</a>
<a href="mailto:info@example.org">mail</a></footer>
<script>console.log("not text");</script>
</body></html>"""


def _head(shown: Site) -> str:
    tongue = shown.tongue
    title, description = shown.words(tongue.title), shown.words(tongue.description)
    charset = f'<meta charset="{tongue.encoding}">' if tongue.declared == "meta" else ""
    thing = {"@context": "https://schema.org", "@type": "LocalBusiness", "name": shown.firm}
    return f"""{charset}<title>{title}</title>
<meta name="description" content="{description}">
<meta property="og:title" content="{title}"><meta property="og:type" content="website">
<meta property="og:locale" content="{tongue.language}">
<link rel="canonical" href="/sites/{shown.number}/">
<script type="application/ld+json">{json.dumps(thing)}</script>
<style>body {{ color: black }}</style>"""


def _main(shown: Site, section: str) -> str:
    tongue = shown.tongue
    about = f"<h2>{tongue.goods[0]}</h2><p>{shown.words(tongue.about)}</p>"
    offer = f"<h2>{tongue.goods[1]}</h2><p>{shown.words(tongue.offer)}</p>"
    parts = {"about": about, "offer": offer}
    return (
        f"<h1>{shown.words(tongue.title)}</h1>{parts.get(section, about + offer)}<p>{shown.words(tongue.closing)}</p>"
    )
