"""Crawl-delay: the documents of a host are asked for one after the other, however many workers there are."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from time import monotonic
from urllib.parse import urlsplit

from actors.website.documents import Document
from pipeline import Job, Snooze, engine, set_rate_limit

# As long as a robots.txt is kept: it may say something else then.
KEPT_SECONDS = 600.0
KEPT_HOSTS = 500

_READ = "select documents from website_visits where job_id = :job"
_REMEMBER = """
    insert into website_visits (job_id, documents) values (:job, cast(:documents as jsonb))
    on conflict (job_id) do update set documents = excluded.documents
"""
_told: dict[str, tuple[float, float]] = {}
_lock = threading.Lock()


class Pace:
    """Of one job. It waits at the gate for each permit of the host's rate limit and then comes back to the documents
    that it has read already: they are kept, and not asked for again."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._known: dict[str, Document] | None = None
        self._more = False
        # whether something was kept, in this attempt or an earlier one
        self.waited = False

    async def document(self, url: str, delay: float, read: Callable[[], Awaitable[Document]]) -> Document:
        """What ``read`` says, ``delay`` seconds after anybody's last document of that host. Raises Snooze till then."""
        known = await self._read()
        if url not in known:
            await self._wait(rate_limit_of(url), delay)
            known[url] = await read()
            self._more = True
        return known[url]

    async def _wait(self, rate_limit: str, delay: float) -> None:
        await asyncio.to_thread(tell, rate_limit, delay)
        try:
            await self._job.limit(rate_limit)
        except Snooze:
            if self._more:
                await self._remember()
            raise

    async def _read(self) -> dict[str, Document]:
        if self._known is None:
            rows = await self._job.read(_READ, job=self._job.id)
            self.waited = bool(rows)
            kept = rows[0]["documents"] if rows else {}
            self._known = {url: Document.model_validate(document) for url, document in kept.items()}
        return self._known

    async def _remember(self) -> None:
        documents = {url: document.model_dump(mode="json") for url, document in (self._known or {}).items()}
        await self._job.keep(_REMEMBER, job=self._job.id, documents=json.dumps(documents))


def rate_limit_of(url: str) -> str:
    """One for a host under all its schemes and ports, and with or without www.

    By name they come after all others: metrics show a thousand rate limits, and these may be many.
    """
    return f"www:{(urlsplit(url).hostname or '').removeprefix('www.')}"


def tell(rate_limit: str, delay: float) -> None:
    """See to it that the rate limit lets one through every ``delay`` seconds."""
    with _lock:
        said, until = _told.get(rate_limit, (0.0, 0.0))
        if said == delay and until > monotonic():
            return
    with engine().begin() as connection:
        set_rate_limit(connection, rate_limit, 1 / delay, 1)
    with _lock:
        if len(_told) >= KEPT_HOSTS:
            _told.clear()
        _told[rate_limit] = delay, monotonic() + KEPT_SECONDS


def forget() -> None:
    """Drop what this process has told."""
    with _lock:
        _told.clear()
