"""The way to a page: robots.txt and its Crawl-delay, redirects and refreshes, the frames of a frameset."""

from __future__ import annotations

from functools import partial
from time import monotonic

from actors.website.browser.render import render
from actors.website.config import WebsiteSettings
from actors.website.documents import Document, checked, read_document, read_rendered
from actors.website.pace import Pace
from actors.website.page import Page, with_frames
from actors.website.robots import check_robots, same_origin
from actors.website.urls import fetchable
from pipeline import Permanent
from pipeline.http.addresses import vet_url
from pipeline.http.client import Fetched, fetch
from pipeline.http.refusals import Refused, unreachable

# From the beginning of a visit, in seconds: less than the phase's time limit, also with a fetch before and after.
RENDERED_WITHIN = 80.0
# Of a frame that is missing the others are still worth reading.
_MISSING = frozenset({401, 403, 404, 410})


async def fetch_page(url: str, settings: WebsiteSettings, pace: Pace | None = None) -> Page:
    """Fetch and read one page through its refreshes, and the frames of a frameset; robots.txt is asked each time."""
    return await Visit(settings, pace).page(url)


class Visit:
    """One job's way. Without a ``pace`` nobody else is at the site, and Crawl-delay is not asked for."""

    def __init__(self, settings: WebsiteSettings, pace: Pace | None = None) -> None:
        self._settings = settings
        self._pace = pace
        self._until = monotonic() + RENDERED_WITHIN

    async def page(self, url: str) -> Page:
        """The page that a browser shows for ``url``; raises if there is none that could be analysed."""
        page = await self._follow(url)
        if not page.frames:
            return page
        frames = [frame for source in page.frames if (frame := await self._frame(source))]
        return with_frames(page, frames)

    async def _follow(self, url: str) -> Page:
        seen: list[str] = []
        while True:
            document = await self._document(url)
            seen += [url, document.page.url]
            url = document.onward
            if not url or url in seen or len(seen) > 2 * self._settings.limits.max_redirects:
                return checked(document.page)

    async def _frame(self, url: str) -> Page | None:
        """One frame; None for one that is not there, or is not a page."""
        try:
            return await self._follow(url)
        except Refused as refused:
            if refused.status in _MISSING:
                return None
            raise
        except Permanent:
            return None

    async def _document(self, url: str) -> Document:
        target = vet_url(fetchable(url), self._settings.address_policy).url
        delay = await self._robots(target)
        if not delay or self._pace is None:
            return await self._read(target)
        return await self._pace.document(target, delay, partial(self._read, target))

    async def _read(self, target: str) -> Document:
        settings = self._settings
        headers = {"User-Agent": settings.user_agent}
        with unreachable(target):
            answer = await fetch(target, policy=settings.address_policy, limits=settings.limits, headers=headers)
        if not same_origin(target, answer.url_final):
            await self._robots(answer.url_final)
        document = await read_document(answer)
        if document.onward or not document.page.needs_scripts or settings.renderer is None:
            return document
        rendered = await render(settings.renderer, answer, self._part, self._until - monotonic())
        return document if rendered is None else await read_rendered(rendered.url, rendered.html)

    async def _part(self, url: str, accept: str) -> Fetched:
        """What a page's scripts fetch: within the same bounds, and as robots.txt allows."""
        settings = self._settings
        await self._robots(vet_url(fetchable(url), settings.address_policy).url)
        headers = {"User-Agent": settings.user_agent, "Accept": accept}
        return await fetch(fetchable(url), policy=settings.address_policy, limits=settings.limits, headers=headers)

    async def _robots(self, url: str) -> float:
        settings = self._settings
        if not settings.respect_robots:
            return 0.0
        return await check_robots(url, settings.user_agent, settings.address_policy, settings.limits)
