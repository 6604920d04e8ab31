"""Addresses in a lenient spelling, as servers write them in Location: made strict before anything judges them."""

from __future__ import annotations

import re
from urllib.parse import quote

_IGNORED = re.compile(r"[\t\n\r]")
_ESCAPED = re.compile(r"[ \"<>`{}|^]")
_EDGES = "".join(map(chr, range(0x21)))


def respelled(url: str) -> str:
    """``url`` with spaces and bars escaped and backslashes turned, as browsers do. It is judged afterwards, as any."""
    url = _IGNORED.sub("", url.strip(_EDGES))
    before, mark, query = url.partition("?")
    scheme = before.partition(":")[0].lower()
    if scheme in {"http", "https"} or before.startswith(("/", "\\")):
        before = before.replace("\\", "/")
    origin, path = _split(before)
    return origin + _ESCAPED.sub(_escape, path) + mark + _ESCAPED.sub(_escape, query)


def _split(address: str) -> tuple[str, str]:
    """The host is not escaped: what is wrong there is refused."""
    found = re.match(r"(?:[a-z][a-z0-9+.-]*:)?//[^/]*", address, re.IGNORECASE)
    return (found.group(), address[found.end() :]) if found else ("", address)


def _escape(sign: re.Match[str]) -> str:
    return quote(sign.group(), safe="")
