"""Addresses as browsers write them (WHATWG URL): spaces, bars, backslashes, dots and other alphabets are understood."""

from __future__ import annotations

import re
from urllib.parse import quote

import ada_url

from actors.website.storable import clean
from pipeline.http.lenient import respelled

LONGEST = 2000
_WEB = ("http://", "https://")
_BARE = frozenset({"utf-8", "utf-16-le", "utf-16-be"})


def normal(url: str, base: str | None = None) -> str:
    """``url`` seen from ``base`` in its one spelling, or empty if it is not a URL."""
    if len(url) > 4 * LONGEST:
        return ""
    try:
        return str(ada_url.URL(clean(url), base).href if base else ada_url.URL(clean(url)).href)
    except ValueError:
        return ""


def absolute(base: str, reference: str, encoding: str = "utf-8") -> str:
    """Where ``reference`` leads, without its fragment; empty unless that is an http address of bearable length."""
    if not reference:
        return ""
    url = normal(_query_in(encoding, reference), base).partition("#")[0]
    return url if url.startswith(_WEB) and len(url) <= LONGEST else ""


def fetchable(url: str) -> str:
    """``url`` as it is sent: what a browser lets stand in an address but a strict reader refuses is escaped."""
    return respelled(normal(url) or url)


def base_of(url: str, base: str | None) -> str:
    """What the page's links are relative to: a base that is not a place is ignored."""
    found = normal(base, url) if base else ""
    return url if not found or found.startswith(("data:", "javascript:")) else found


def _query_in(encoding: str, reference: str) -> str:
    """Letters of a query are sent in the page's own encoding; everywhere else they are UTF-8."""
    if encoding in _BARE or reference.isascii():
        return reference
    before, mark, rest = reference.partition("?")
    query, sharp, fragment = rest.partition("#")
    if "#" in before:
        return reference
    return (
        before + mark + re.sub(r"[^\x00-\x7f]", lambda sign: _encoded(sign.group(), encoding), query) + sharp + fragment
    )


def _encoded(sign: str, encoding: str) -> str:
    try:
        return quote(sign.encode(encoding), safe="")
    except UnicodeEncodeError:
        return f"%26%23{ord(sign)}%3B"
