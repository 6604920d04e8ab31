"""Phase 1: fetch the site and keep what its page says."""

from __future__ import annotations

import re
from typing import Any

from actors.website import store
from actors.website.config import worker_settings
from actors.website.pace import Pace
from actors.website.page import Page
from actors.website.visit import fetch_page
from pipeline import Done, Job, Permanent

_HAS_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d)", re.IGNORECASE)


async def website_analysis(job: Job) -> Done:
    """Keep the page at ``body["url"]``; fails for good if there is none that could be analysed."""
    asked = asked_url(job.body)
    pace = Pace(job)
    page = await fetch_page(asked, worker_settings(), pace)
    return Done(result=summary(page), write=store.save_page(job.id, asked, page, waited=pace.waited))


def asked_url(body: dict[str, Any]) -> str:
    """The address in a job's body; ``example.com`` means ``https://example.com``."""
    url = body.get("url")
    if not isinstance(url, str) or not url.strip():
        raise Permanent('the job names no address: submit it with {"url": "https://…"}')
    url = url.strip()
    return url if _HAS_SCHEME.match(url) else f"https://{url.removeprefix('//')}"


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
        "encoding_doubtful": page.encoding_doubtful,
        "rendered": page.rendered,
    }
