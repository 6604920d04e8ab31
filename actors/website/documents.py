"""One document of a visit: the answer of a site as the page that it shows, and where it leads at once."""

from __future__ import annotations

import re

from actors.reading import read_in_time
from actors.website.hops import next_hop
from actors.website.page import Frozen, Page, Parsed, parse, parse_page
from actors.website.soft_errors import NEXT_TO_NOTHING
from pipeline import Permanent, Transient
from pipeline.http.client import Fetched
from pipeline.http.refusals import require_success

PAGE_TYPES = frozenset({"", "text/html", "application/xhtml+xml", "text/plain", "application/xml", "text/xml"})
_SIGNATURES = (
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"GIF8", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"PK\x03\x04", "an archive"),
    (b"\x1f\x8b", "an archive"),
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd]")


class Document(Frozen):
    """A page, and the address that a browser shows instead at once; empty if it stays."""

    page: Page
    onward: str = ""


async def read_document(answer: Fetched) -> Document:
    """What is in ``answer``; raises if that is not a page."""
    require_success(answer)
    parsed = await read_in_time(len(answer.body), _parsed, answer)
    refresh = answer.headers.get("refresh", "")
    return Document(page=parsed.page, onward=next_hop(answer.url_final, refresh, parsed.refresh, parsed.jump))


async def read_rendered(url: str, html: str) -> Document:
    """What a browser made of a page; it has been everywhere that the page leads to by itself.

    If there is still next to nothing, what the page needs was refused to it, and the doubt stays.
    """
    body = html.encode("utf-8", "replace")
    page = await read_in_time(len(body), parse_page, body, url, "text/html; charset=utf-8")
    empty = len(page.text) < NEXT_TO_NOTHING and not page.headings
    return Document(page=page.model_copy(update={"rendered": True, "needs_scripts": empty}))


def checked(page: Page) -> Page:
    """The page, if there is something to analyse and it can be read; raises otherwise."""
    _check_readable(page)
    if page.is_empty and not page.frames:
        raise Permanent(f"{page.url} has nothing to analyse: no title, no description, no text")
    return page


def _parsed(answer: Fetched) -> Parsed:
    _check_kind(answer)
    headers = answer.headers
    language = headers.get("content-language", "")
    return parse(answer.body, answer.url_final, headers.get("content-type", ""), content_language=language)


def _check_kind(answer: Fetched) -> None:
    if answer.content_type not in PAGE_TYPES:
        raise Permanent(f"{answer.url_final} is {answer.content_type}, not a web page")
    for signature, kind in _SIGNATURES:
        if answer.body.startswith(signature):
            raise Permanent(f"{answer.url_final} is {kind}, not a web page")


def _check_readable(page: Page) -> None:
    """Bytes spoiled on the way may be right the next time, so this is worth another try."""
    sample = (page.title + page.text)[:20_000]
    unreadable = len(_CONTROL.findall(sample))
    if unreadable > 20 and unreadable > len(sample) * 0.1:
        raise Transient(f"the answer of {page.url} is not readable text ({unreadable * 100 // len(sample)} % is noise)")
