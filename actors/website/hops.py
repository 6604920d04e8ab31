"""Where a page sends its reader at once: a refresh in a header or the page, or a script."""

from __future__ import annotations

import re

from actors.website.urls import absolute, base_of

# Later ones are for pages that renew themselves, or end a session.
AT_ONCE_SECONDS = 1.0
_REFRESH = re.compile(r"\s*(\d*)(?:\.[\d.]*)?\s*(?:[;,\s]\s*(.*))?", re.DOTALL)
_URL = re.compile(r"url\s*=\s*", re.IGNORECASE)


def next_hop(url: str, refresh_header: str, refresh_meta: str, jump: str, base: str = "") -> str:
    """The address that a browser would show instead of ``url``; empty if it stays."""
    for refresh in (refresh_header, refresh_meta):
        target = refresh_target(refresh)
        if target is not None:
            return absolute(base_of(url, base), target) if target else ""
    return absolute(url, jump)


def refresh_target(refresh: str) -> str | None:
    """The reference in ``0; url=…`` (empty for the page itself); None if there is none, or not at once."""
    found = _REFRESH.fullmatch(refresh[:3000])
    if not refresh.strip() or not found or (not found.group(1) and not refresh.lstrip().startswith(".")):
        return None
    if float(found.group(1)[:9] or 0) > AT_ONCE_SECONDS:
        return None
    rest = found.group(2) or ""
    named = _URL.match(rest)
    target = rest[named.end() :] if named else rest
    if target[:1] in {"'", '"'}:
        quote, target = target[0], target[1:]
        target = target.partition(quote)[0]
    return target.strip()
