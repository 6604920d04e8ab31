"""Cookies for the length of one fetch: many sites redirect to themselves until their cookie comes back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

MOST = 30
LONGEST = 4096


@dataclass(frozen=True)
class _Cookie:
    value: str
    domain: str
    host_only: bool
    path: str
    secure: bool


class Cookies:
    """What the hops of one fetch have set. Expiry is left out but for deletion: a fetch lasts seconds."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], _Cookie] = {}

    def take(self, url: str, headers: Iterable[str]) -> None:
        """Keep what the answer of ``url`` sets (its Set-Cookie headers)."""
        host = (urlsplit(url).hostname or "").lower()
        for header in headers:
            if len(header) <= LONGEST:
                self._take(host, header)

    def header(self, url: str) -> str:
        """The Cookie header for ``url``; empty if there is none to send."""
        parts = urlsplit(url)
        host, path = (parts.hostname or "").lower(), parts.path or "/"
        fitting = [
            f"{name}={cookie.value}"
            for (name, _, _), cookie in self._kept.items()
            if _reaches(cookie, host) and _below(cookie.path, path) and (parts.scheme == "https" or not cookie.secure)
        ]
        return "; ".join(fitting)

    def _take(self, host: str, header: str) -> None:
        first, *rest = header.split(";")
        name, equals, value = first.strip().partition("=")
        if not equals or not name or not first.isprintable():
            return
        given = {key.strip().lower(): said.strip() for key, _, said in (part.partition("=") for part in rest)}
        domain = given.get("domain", "").lower().removeprefix(".")
        if domain and not (host == domain or (host.endswith("." + domain) and "." in domain)):
            return
        path = given.get("path", "") if given.get("path", "").startswith("/") else "/"
        key = (name, domain or host, path)
        if given.get("max-age", "1").startswith(("0", "-")):
            self._kept.pop(key, None)
        elif len(self._kept) < MOST or key in self._kept:
            self._kept[key] = _Cookie(value, domain or host, not domain, path, "secure" in given)


def _reaches(cookie: _Cookie, host: str) -> bool:
    return host == cookie.domain or (not cookie.host_only and host.endswith("." + cookie.domain))


def _below(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")
