"""The document registry: log in, find a document, stream its PDF. One session serves all jobs of an event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import httpx

from actors.document.boost import tidy
from actors.document.config import DocumentSettings, only
from pipeline import Permanent, Transient
from pipeline.http.client import MEBIBYTE, Fetched, Limits, deadline, fetch, post, shared_fetcher
from pipeline.http.per_loop import PerLoop
from pipeline.http.refusals import answered, refusal, require_success

Answer = TypeVar("Answer")
REFUSED = frozenset({httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN})


@dataclass(frozen=True)
class Entry:
    """A document as the registry lists it."""

    number: str
    title: str
    pdf_url: str


class _Expired(Exception):
    """The registry no longer knows the session."""


class Registry:
    """A client with one session, made at its first use and again when it has expired."""

    def __init__(self, settings: DocumentSettings) -> None:
        self._url, self._user, self._password = settings.registry
        self._policy = only(self._url)
        # no redirects: the session is for this address alone
        self._limits = Limits(
            connect=settings.connect_seconds,
            read=settings.read_seconds,
            total=settings.total_seconds,
            max_redirects=0,
            max_raw=MEBIBYTE,
            max_body=MEBIBYTE,
        )
        self._lock = asyncio.Lock()
        self._cookie: str | None = None

    async def find(self, number: str) -> Entry:
        """The one document with this number; raises Permanent if the registry has none."""
        query = httpx.QueryParams(number=number)
        answer = await self._with_session(lambda cookie: self._get(f"{self._url}/documents?{query}", cookie))
        for row in _rows(answer):
            if isinstance(row, dict) and row.get("number") == number:
                return self._entry(number, row)
        raise Permanent(f"the registry has no document {number}")

    @asynccontextmanager
    async def pdf(self, entry: Entry) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of the document's PDF as they arrive, within the time limit for all of them."""
        async with deadline(self._limits.total), AsyncExitStack() as opened:
            response = await self._with_session(lambda cookie: self._stream(entry.pdf_url, cookie, opened))
            yield response.aiter_raw(64 * 1024)

    def _entry(self, number: str, row: dict[str, Any]) -> Entry:
        named = row.get("pdf")
        try:
            target = urljoin(f"{self._url}/", named) if isinstance(named, str) and named else ""
        except ValueError:
            target = ""
        if not target:
            raise Permanent(f"the registry names no address of the PDF of document {number}: {str(named)[:200]!r}")
        if urlsplit(target)[:2] != urlsplit(self._url)[:2]:
            raise Permanent(f"the registry keeps the PDF of document {number} at another address: {target[:200]}")
        return Entry(number, tidy(title if isinstance(title := row.get("title"), str) else "")[:500], target)

    async def _with_session(self, call: Callable[[str], Awaitable[Answer]]) -> Answer:
        cookie = await self._session()
        try:
            return await call(cookie)
        except _Expired:
            self._forget(cookie)
        try:
            return await call(await self._session())
        except _Expired:
            raise Transient("the registry refused a session that it had just opened") from None

    async def _session(self) -> str:
        async with self._lock:
            if self._cookie is None:
                self._cookie = await self._log_in()
            return self._cookie

    def _forget(self, cookie: str) -> None:
        # another job may have logged in again meanwhile: its session stays
        if self._cookie == cookie:
            self._cookie = None

    async def _log_in(self) -> str:
        account = json.dumps({"user": self._user, "password": self._password.get_secret_value()}).encode()
        headers = {"Content-Type": "application/json"}
        answer = await post(f"{self._url}/login", account, policy=self._policy, limits=self._limits, headers=headers)
        if answer.status in REFUSED:
            raise Permanent(
                f"the registry refused the account {self._user!r}: check REGISTRY_USER and REGISTRY_PASSWORD"
            )
        require_success(answer)
        cookie = str(answer.headers.get("set-cookie", "")).partition(";")[0].strip()
        if not cookie:
            raise Transient("the registry accepted the account but opened no session")
        return cookie

    async def _get(self, url: str, cookie: str) -> Fetched:
        answer = await fetch(url, policy=self._policy, limits=self._limits, headers={"Cookie": cookie})
        if answer.status == httpx.codes.UNAUTHORIZED:
            raise _Expired
        require_success(answer)
        return answer

    async def _stream(self, url: str, cookie: str, opened: AsyncExitStack) -> httpx.Response:
        headers = {"Cookie": cookie, "Accept-Encoding": "identity"}
        fetcher = await shared_fetcher(self._policy)
        async with AsyncExitStack() as opening:
            response = await opening.enter_async_context(fetcher.stream(url, self._limits, headers))
            if response.status_code == httpx.codes.UNAUTHORIZED:
                raise _Expired
            if response.status_code != httpx.codes.OK:
                raise refusal(answered(url, response.status_code), response.status_code, response.headers)
            await opened.enter_async_context(opening.pop_all())
        return response


def _rows(answer: Fetched) -> list[Any]:
    try:
        rows = json.loads(answer.body)["documents"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise Transient(f"{answer.url_final} did not answer with a list of documents") from None
    return rows if isinstance(rows, list) else []


_shared: PerLoop[DocumentSettings, Registry] = PerLoop(Registry)


async def shared_registry(settings: DocumentSettings) -> Registry:
    """The one client of this event loop for the registry and account in ``settings``."""
    return await _shared.get(settings)
