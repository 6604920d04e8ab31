"""The document registry: log in, find a document, stream its PDF. One session serves all threads of a process."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import httpx
from pydantic import SecretStr

from actors.document.boost import tidy
from actors.document.config import DocumentSettings, only
from pipeline import Permanent, Transient
from pipeline.http.client import MEBIBYTE, USER_AGENT, Fetched, Limits, fetch, post
from pipeline.http.pinned import PinnedTransport, deadline

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
    """A client with one session, made at its first use and again when it has expired. Thread-safe."""

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
        self._client = httpx.Client(transport=PinnedTransport(self._policy), trust_env=False, follow_redirects=False)
        self._lock = threading.Lock()
        self._cookie: str | None = None

    def find(self, number: str) -> Entry:
        """The one document with this number; raises Permanent if the registry has none."""
        query = httpx.QueryParams(number=number)
        answer = self._with_session(lambda cookie: self._get(f"{self._url}/documents?{query}", cookie))
        for row in _rows(answer):
            if isinstance(row, dict) and row.get("number") == number:
                return self._entry(number, row)
        raise Permanent(f"the registry has no document {number}")

    @contextmanager
    def pdf(self, entry: Entry) -> Iterator[Iterator[bytes]]:
        """The bytes of the document's PDF as they arrive, within the time limit for all of them."""
        with deadline(self._limits.total):
            response = self._with_session(lambda cookie: self._stream(entry.pdf_url, cookie))
            try:
                yield response.iter_raw(64 * 1024)
            finally:
                response.close()

    def _entry(self, number: str, row: dict[str, Any]) -> Entry:
        target = urljoin(f"{self._url}/", str(row.get("pdf", "")))
        if urlsplit(target)[:2] != urlsplit(self._url)[:2]:
            raise Permanent(f"the registry keeps the PDF of document {number} at another address: {target[:200]}")
        return Entry(number, tidy(str(row.get("title", "")))[:500], target)

    def _with_session(self, call: Callable[[str], Answer]) -> Answer:
        cookie = self._session()
        try:
            return call(cookie)
        except _Expired:
            self._forget(cookie)
        try:
            return call(self._session())
        except _Expired:
            raise Transient("the registry refused a session that it had just opened") from None

    def _session(self) -> str:
        with self._lock:
            if self._cookie is None:
                self._cookie = self._log_in()
            return self._cookie

    def _forget(self, cookie: str) -> None:
        # another thread may have logged in again meanwhile: its session stays
        with self._lock:
            if self._cookie == cookie:
                self._cookie = None

    def _log_in(self) -> str:
        account = json.dumps({"user": self._user, "password": self._password.get_secret_value()}).encode()
        headers = {"Content-Type": "application/json"}
        answer = post(f"{self._url}/login", account, policy=self._policy, limits=self._limits, headers=headers)
        if answer.status in REFUSED:
            raise Permanent(
                f"the registry refused the account {self._user!r}: check REGISTRY_USER and REGISTRY_PASSWORD"
            )
        answer.raise_for_status()
        cookie = str(answer.headers.get("set-cookie", "")).partition(";")[0].strip()
        if not cookie:
            raise Transient("the registry accepted the account but opened no session")
        return cookie

    def _get(self, url: str, cookie: str) -> Fetched:
        answer = fetch(url, policy=self._policy, limits=self._limits, headers={"Cookie": cookie})
        if answer.status == httpx.codes.UNAUTHORIZED:
            raise _Expired
        answer.raise_for_status()
        return answer

    def _stream(self, url: str, cookie: str) -> httpx.Response:
        headers = {"Cookie": cookie, "User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
        timeout = httpx.Timeout(self._limits.read, connect=self._limits.connect)
        request = self._client.build_request("GET", url, headers=headers, timeout=timeout)
        response = self._client.send(request, stream=True)
        if response.status_code != httpx.codes.OK:
            response.close()
            if response.status_code == httpx.codes.UNAUTHORIZED:
                raise _Expired
            told = f"{url} answered {response.status_code} {response.reason_phrase}"
            raise httpx.HTTPStatusError(told, request=request, response=response)
        return response


def _rows(answer: Fetched) -> list[Any]:
    try:
        rows = json.loads(answer.body)["documents"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise Transient(f"{answer.url_final} did not answer with a list of documents") from None
    return rows if isinstance(rows, list) else []


class _Shared:
    """The registries of this process by address and account."""

    def __init__(self) -> None:
        self.forget()

    def get(self, settings: DocumentSettings) -> Registry:
        with self._lock:
            if settings.registry not in self._known:
                self._known[settings.registry] = Registry(settings)
            return self._known[settings.registry]

    def forget(self) -> None:
        """In a forked child: its parent's connections are not its own."""
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str, SecretStr], Registry] = {}


_shared = _Shared()
os.register_at_fork(after_in_child=_shared.forget)


def shared_registry(settings: DocumentSettings) -> Registry:
    """The one client of this process for the registry and account in ``settings``."""
    return _shared.get(settings)
