"""What a status that is no success, or no answer, means for the job: wait as asked, try again, or fail for good."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import httpx

from pipeline.declare.errors import Permanent, Snooze, Transient, retry_after
from pipeline.http.client import Fetched

# These may pass; any other 4xx is an answer.
_LATER = frozenset({408, 425, 429})
# What the client undoes, and what else a body may be packed in.
UNPACKED = frozenset({"gzip", "x-gzip", "deflate", "br"})
PACKED = frozenset({"zstd", "compress", "x-compress", "dcb", "dcz", "exi", "pack200-gzip"})


class Refused(Permanent):
    """The other side says no, with this status; asking again would not help."""

    def __init__(self, words: str, status: int) -> None:
        super().__init__(words)
        self.status = status


def refusal(words: str, status: int, headers: httpx.Headers) -> Refused | Snooze | Transient:
    """The exception to raise. It says what happened in ``words``, and needs no traceback in anybody's log."""
    if 400 <= status < 500 and status not in _LATER:
        return Refused(words, status)
    wait = retry_after(headers.get("retry-after"), datetime.now(UTC)) if status >= 400 else None
    return Transient(words) if wait is None else Snooze(wait, "retry_after", words, asked=True)


@contextmanager
def unreachable(url: str) -> Iterator[None]:
    """A connection that fails within the block is raised as Transient: it may work later."""
    try:
        yield
    except httpx.TransportError as error:
        raise Transient(f"{url} was not fetched: {type(error).__name__}: {error}".rstrip(": ")) from None


def require_success(answer: Fetched) -> None:
    """Raise what a status that is no success means, or a part, or a body packed in a way that nobody asked for."""
    if not 200 <= answer.status < 300:
        raise refusal(answered(answer.url_final, answer.status), answer.status, answer.headers)
    if answer.status == httpx.codes.PARTIAL_CONTENT:
        raise Transient(f"{answer.url_final} answered with a part only, which was not asked for")
    if packed := still_packed(answer.headers):
        raise Transient(f"{answer.url_final} answered in the encoding {packed}, which was not asked for")


def still_packed(headers: httpx.Headers) -> str:
    """The encoding that the client could not undo, in its own words; empty if the body is as it was meant.

    A word that is no encoding (some servers say ``utf-8`` here) is ignored, as browsers do.
    """
    said = [one.strip() for one in str(headers.get("content-encoding", "")).lower().split(",")]
    named = [one for one in said if one in PACKED or one in UNPACKED]
    return ", ".join(named)[:60] if len(named) > 1 or set(named) & PACKED else ""


def answered(who: str, status: int) -> str:
    """``http://… answered 404 Not Found``."""
    return f"{who} answered {status} {httpx.codes.get_reason_phrase(status)}".rstrip()
