"""Phase 1: fetch the site and keep what its page says."""

from __future__ import annotations

import re
from typing import Any

import httpx

from actors.reading import read_in_time
from actors.website import store
from actors.website.config import WebsiteSettings, worker_settings
from actors.website.hops import next_hop
from actors.website.page import Page, Parsed, parse, with_frames
from actors.website.robots import check_robots, same_origin
from actors.website.urls import fetchable
from pipeline import Done, Job, Permanent, Transient
from pipeline.http.addresses import vet_url
from pipeline.http.client import Fetched, fetch

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
_HAS_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d)", re.IGNORECASE)


async def website_analysis(job: Job) -> Done:
    """Keep the page at ``body["url"]``; fails for good if there is none that could be analysed."""
    asked = asked_url(job.body)
    page = await fetch_page(asked, worker_settings())
    return Done(result=summary(page), write=store.save_page(job.id, asked, page))


def asked_url(body: dict[str, Any]) -> str:
    """The address in a job's body; ``example.com`` means ``https://example.com``."""
    url = body.get("url")
    if not isinstance(url, str) or not url.strip():
        raise Permanent('the job names no address: submit it with {"url": "https://…"}')
    url = url.strip()
    return url if _HAS_SCHEME.match(url) else f"https://{url.removeprefix('//')}"


async def fetch_page(url: str, settings: WebsiteSettings) -> Page:
    """Fetch and read one page through its refreshes, and the frames of a frameset; robots.txt is asked each time."""
    page = await _follow(url, settings)
    if not page.frames:
        return page
    frames = [frame for source in page.frames if (frame := await _frame(source, settings))]
    return with_frames(page, frames)


async def _follow(url: str, settings: WebsiteSettings) -> Page:
    seen: list[str] = []
    while True:
        answer = await _fetch(url, settings)
        seen += [url, answer.url_final]
        answer.raise_for_status()
        parsed = await read_in_time(len(answer.body), _parsed, answer)
        url = next_hop(answer.url_final, answer.headers.get("refresh", ""), parsed.refresh, parsed.script)
        if not url or url in seen or len(seen) > 2 * settings.limits.max_redirects:
            return _checked(parsed.page)


async def _frame(url: str, settings: WebsiteSettings) -> Page | None:
    """One frame; None for one that is not there, or is not a page: the others are still worth reading."""
    try:
        return await _follow(url, settings)
    except Permanent:
        return None
    except httpx.HTTPStatusError as refused:
        if refused.response.status_code in {401, 403, 404, 410}:
            return None
        raise


async def _fetch(url: str, settings: WebsiteSettings) -> Fetched:
    policy, limits = settings.address_policy, settings.limits
    target = vet_url(fetchable(url), policy).url
    if settings.respect_robots:
        await check_robots(target, settings.user_agent, policy, limits)
    answer = await fetch(target, policy=policy, limits=limits, headers={"User-Agent": settings.user_agent})
    if settings.respect_robots and not same_origin(target, answer.url_final):
        await check_robots(answer.url_final, settings.user_agent, policy, limits)
    return answer


def read_page(answer: Fetched) -> Page:
    """The page in ``answer``; raises if it is something else, or nothing."""
    return _checked(_parsed(answer).page)


def _parsed(answer: Fetched) -> Parsed:
    _check_kind(answer)
    headers = answer.headers
    language = headers.get("content-language", "")
    return parse(answer.body, answer.url_final, headers.get("content-type", ""), content_language=language)


def _checked(page: Page) -> Page:
    _check_readable(page)
    if page.is_empty and not page.frames:
        raise Permanent(f"{page.url} has nothing to analyse: no title, no description, no text")
    return page


def summary(page: Page) -> dict[str, Any]:
    """The few words that later phases and people see in the job's results."""
    return {
        "final_url": page.url,
        "title": page.title[:200],
        "language": page.language,
        "encoding": page.encoding,
        "headings": len(page.headings),
        "links_in": len(page.links_in),
        "links_out": len(page.links_out),
        "text_length": len(page.text),
        "truncated": page.truncated,
        "links_cut": page.links_cut,
        "soft_error": page.soft_error,
        "needs_scripts": page.needs_scripts,
    }


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
