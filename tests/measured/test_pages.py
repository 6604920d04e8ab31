"""Nasty pages are read as a browser shows them; figures are printed for each half.

The whole way is taken: robots.txt, redirects, cookies, refreshes, frames. Only the network is replaced.
"""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from actors.website import robots
from actors.website.config import WebsiteSettings
from actors.website.page import Page, parse_page
from actors.website.website_analysis import fetch_page
from pipeline import Permanent
from pipeline.http import client

HERE = Path(__file__).parent / "pages"
MOST_DIFFERENT = 3
Row = dict[str, Any]


def plain(text: str) -> str:
    return " ".join(text.split())


def same(url: str) -> str:
    return url.replace("|", "%7C")


class Web:
    """The answers of one row, as a transport."""

    def __init__(self, row: Row, folder: Path) -> None:
        self.rows = sorted([row, *row.get("resources", [])], key=lambda one: "if_cookie" not in one)
        self.folder = folder

    def __call__(self, request: httpx.Request) -> httpx.Response:
        for one in self.rows:
            wanted = one.get("if_cookie")
            if same(one["url"]) == same(str(request.url)) and (
                not wanted or wanted in request.headers.get("cookie", "")
            ):
                return httpx.Response(
                    one["status"], headers=one["headers"], stream=httpx.ByteStream(body_of(one, self.folder))
                )
        return httpx.Response(404, stream=httpx.ByteStream(b""))


def body_of(row: Row, folder: Path) -> bytes:
    return (folder / row["file"]).read_bytes() if "file" in row else b""


def shown(row: Row, folder: Path, settings: WebsiteSettings) -> Page | None:
    """The page as the workflow keeps it; of one that it refuses to keep, what would be read. None if not allowed."""
    try:
        return asyncio.run(fetch_page(row["url"], settings))
    except (httpx.HTTPStatusError, Permanent) as refused:
        if "robots.txt forbids" in str(refused):
            return None
        headers = row["headers"]
        return parse_page(body_of(row, folder), row["url"], headers.get("content-type", ""))


def site(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")


def kept_links(links: list[str], url: str) -> list[str]:
    """As the workflow keeps links: those on the web, each place once, the site's own first."""
    web = [same(link.partition("#")[0]) for link in links if link.startswith(("http://", "https://"))]
    once = list(dict.fromkeys(web))
    return sorted(once, key=lambda link: site(link) != site(url))


def differences(row: Row, page: Page | None, folder: Path) -> list[str]:
    expected = row["expected"]
    if expected.get("allowed") is False or page is None:
        return [] if (page is None) == (expected.get("allowed") is False) else ["allowed"]
    found: Row = {
        "title": "" if page.title_borrowed else page.title,
        "headings": [[heading.level, plain(heading.text)] for heading in page.headings],
        "language": page.language,
        "links": [same(link.url) for link in [*page.links_in, *page.links_out]],
        "link_count": page.links_total,
        "first_links": [link.url for link in page.links_in[:3]],
        "text": plain(re.sub(r"^#{1,6} ", "", page.text, flags=re.MULTILINE)),
        "url": same(page.url),
        "soft_error": page.soft_error,
        "needs_scripts": page.needs_scripts,
    }
    wanted = {key: value for key, value in expected.items() if key in found}
    if wanted.get("needs_scripts") and found["headings"] == wanted["headings"]:
        # what the script shows was found all the same, by following its redirect
        del wanted["needs_scripts"]
    if "links" in wanted:
        wanted["links"] = kept_links(wanted["links"], page.url)
    if "url" in wanted:
        wanted["url"] = same(wanted["url"])
    wrong = [f"{key}: {found[key]!r} for {value!r}" for key, value in wanted.items() if found[key] != value]
    return wrong + delays(row, folder)


def delays(row: Row, folder: Path) -> list[str]:
    wanted = row["expected"].get("crawl_delay")
    if wanted is None:
        return []
    rules = next(one for one in row["resources"] if one["url"].endswith("/robots.txt"))
    found = robots.crawl_delay(robots.read_rules(body_of(rules, folder)), "durable-pipeline/1.0")
    return [] if found == wanted else [f"crawl_delay: {found} for {wanted}"]


@pytest.mark.parametrize("half", ["develop", "measured"])
def test_pages_are_read_as_a_browser_shows_them(
    half: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At most three of a half differ; the README explains those."""
    monkeypatch.setenv("PIPELINE_WEBSITE_ALLOW_PRIVATE", "1")
    settings, folder = WebsiteSettings(), HERE / half
    rows: list[Row] = json.loads((folder / "pages.json").read_text(encoding="utf-8"))
    differ: list[str] = []
    for row in rows:
        robots.forget()
        web = Web(row, folder)
        monkeypatch.setattr(client, "PinnedTransport", lambda *_, web=web: httpx.MockTransport(web))
        wrong = differences(row, shown(row, folder, settings), folder)
        if wrong:
            told = "; ".join(wrong) if half == "develop" else ", ".join(one.partition(":")[0] for one in wrong)
            differ.append(f"{row['id']} {row['form']}: {told}")
    with capsys.disabled():
        print(f"\npages, {half}: {len(rows) - len(differ)} of {len(rows)} right", *differ, sep="\n  ")
    assert len(differ) <= MOST_DIFFERENT
