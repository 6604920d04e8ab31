"""What a page says, in a shape that can be stored, shown and put into a prompt."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urljoin, urlsplit

from pydantic import BaseModel, ConfigDict

from actors.website.encoding import decode
from actors.website.reader import Bounds, Reading, read_html
from actors.website.storable import load_json, one_line

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z0-9]{2,8}){0,3}", re.IGNORECASE)
LONGEST_LINK = 2000
LONGEST_JSON_LD = 65_536


class Frozen(BaseModel):
    """A value: equal by content, never changed."""

    model_config = ConfigDict(frozen=True)


class Heading(Frozen):
    """A heading; ``level`` is 1 to 6."""

    level: int
    text: str


class Link(Frozen):
    """Where a link leads, and its words."""

    url: str
    text: str


class Page(Frozen):
    """One page. ``truncated`` says that a bound was met and the rest was left out."""

    url: str
    title: str = ""
    description: str = ""
    language: str = ""
    canonical: str = ""
    meta: dict[str, str] = {}
    open_graph: dict[str, str] = {}
    headings: list[Heading] = []
    links_in: list[Link] = []
    links_out: list[Link] = []
    structured_data: list[Any] = []
    text: str = ""
    encoding: str = ""
    truncated: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing here that could be analysed."""
        return not (self.title or self.description or self.text)


def parse_page(body: bytes, url: str, content_type: str = "", bounds: Bounds | None = None) -> Page:
    """Read ``body`` as the page at ``url``. Never raises, and ends in time linear in the bytes."""
    decoded = decode(body, content_type)
    reading = read_html(decoded.text, bounds or Bounds())
    base = _absolute(url, reading.base) or url
    links_in, links_out = _links(reading, base, url)
    named, graph = _named(reading, "og:", inside=False), _named(reading, "og:", inside=True)
    return Page(
        url=url,
        title=_first(reading.title, graph.get("title"), *(words for _, words in reading.headings[:1])),
        description=_first(named.get("description"), graph.get("description")),
        language=_language(reading.language, named.get("content-language"), graph.get("locale")),
        canonical=_absolute(base, reading.canonical),
        meta=named,
        open_graph=graph,
        headings=[Heading(level=level, text=words) for level, words in reading.headings],
        links_in=links_in,
        links_out=links_out,
        structured_data=_structured(reading.json_ld),
        text="\n".join(reading.lines),
        encoding=decoded.encoding,
        truncated=reading.full,
    )


def _first(*candidates: str | None) -> str:
    return next((found for found in candidates if found), "")


def _named(reading: Reading, prefix: str, *, inside: bool) -> dict[str, str]:
    return {
        (name.removeprefix(prefix) if inside else name): value
        for name, value in reading.meta.items()
        if name.startswith(prefix) is inside
    }


def _language(*candidates: str | None) -> str:
    for candidate in candidates:
        spelled = (candidate or "").strip().replace("_", "-")
        if _LANGUAGE.fullmatch(spelled):
            return spelled.lower()
    return ""


def _absolute(base: str, reference: str) -> str:
    """``reference`` seen from ``base``; empty unless that is an http address of bearable length."""
    if not reference:
        return ""
    try:
        joined = urljoin(base, reference.strip())
        parts = urlsplit(joined)
        fits = parts.scheme in {"http", "https"} and parts.hostname and len(joined) <= LONGEST_LINK
    except ValueError:
        return ""
    return one_line(joined.partition("#")[0], LONGEST_LINK) if fits else ""


def _links(reading: Reading, base: str, url: str) -> tuple[list[Link], list[Link]]:
    home, seen = _site(url), set()
    inside: list[Link] = []
    outside: list[Link] = []
    for reference, words in reading.links:
        address = _absolute(base, reference)
        if address and address not in seen:
            seen.add(address)
            (inside if _site(address) == home else outside).append(Link(url=address, text=words))
    return inside, outside


def _site(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")


def _structured(scripts: list[str]) -> list[Any]:
    """The JSON-LD that can be read; what is broken is left out, as every consumer of it does."""
    found: list[Any] = []
    left = LONGEST_JSON_LD
    for script in scripts:
        left -= len(script)
        if left < 0:
            break
        try:
            found.append(load_json(script.strip().removeprefix("<!--").removesuffix("-->")))
        except ValueError:
            continue
    return found
