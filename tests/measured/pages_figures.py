"""Measures the reading of pages on the labelled set: ``python -m tests.measured.pages_figures [half] [--render]``.

The whole way is taken over HTTP: robots.txt, redirects, cookies, refreshes, frames. With ``--render``, pages that are
empty without scripts are shown by Debian's Chromium.
"""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from actors.website import robots
from actors.website.config import WebsiteSettings
from actors.website.page import Page, parse_page
from actors.website.visit import fetch_page
from pipeline import Permanent
from tests.measured.pages_web import body_of, same, serving
from tests.measured.test_sets import HALVES, HERE, Row, rows

CHROMIUM = "/usr/bin/chromium"


@dataclass
class Figures:
    """Of one half. ``differ`` names each page that differs, and in what; of the measured half only in which keys."""

    half: str
    total: int = 0
    rendered: int = 0
    differ: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """As they are printed."""
        right = self.total - len(self.differ)
        head = f"pages, {self.half}: {right} of {self.total} right, {self.rendered} of them rendered by a browser"
        return [head, *(f"  {one}" for one in self.differ)]


def settings(*, render: bool) -> WebsiteSettings:
    """The defaults, but that hosts of the set count as public."""
    return WebsiteSettings(allow_private=True, render=render, browser=CHROMIUM, browser_seconds=60.0)


def measure(half: str, *, render: bool = False) -> Figures:
    """Every page of one half."""
    return asyncio.run(_measure(half, settings(render=render)))


async def _measure(half: str, chosen: WebsiteSettings) -> Figures:
    figures, folder = Figures(half), HERE / "pages" / half
    for row in rows("pages", half):
        figures.total += 1
        robots.forget()
        async with serving(row, folder):
            page = await shown(row, folder, chosen)
        figures.rendered += page is not None and page.rendered
        wrong = differences(row, page, folder)
        if wrong:
            told = "; ".join(wrong) if half == "develop" else ", ".join(one.partition(":")[0] for one in wrong)
            figures.differ.append(f"{row['id']} {row['form']}: {told}")
    return figures


async def shown(row: Row, folder: Path, chosen: WebsiteSettings) -> Page | None:
    """The page as the workflow keeps it; of one that it refuses to keep, what would be read. None if not allowed."""
    try:
        return await fetch_page(row["url"], chosen)
    except Permanent as refused:
        if "robots.txt forbids" in str(refused):
            return None
        return parse_page(body_of(row, folder), row["url"], row["headers"].get("content-type", ""))


def site(url: str) -> str:
    """The host, with or without www."""
    return (urlsplit(url).hostname or "").removeprefix("www.")


def kept_links(links: list[str], url: str) -> list[str]:
    """As the workflow keeps links: those on the web, each place once, the site's own first."""
    web = [same(link.partition("#")[0]) for link in links if link.startswith(("http://", "https://"))]
    once = list(dict.fromkeys(web))
    return sorted(once, key=lambda link: site(link) != site(url))


def plain(text: str) -> str:
    """White space collapsed."""
    return " ".join(text.split())


def differences(row: Row, page: Page | None, folder: Path) -> list[str]:
    """What is not as a browser shows it, each with its key first."""
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
    """Whether Crawl-delay was read right."""
    wanted = row["expected"].get("crawl_delay")
    if wanted is None:
        return []
    rules = next(one for one in row["resources"] if one["url"].endswith("/robots.txt"))
    found = robots.crawl_delay(robots.read_rules(body_of(rules, folder)), "durable-pipeline/1.0")
    return [] if found == wanted else [f"crawl_delay: {found} for {wanted}"]


def main(arguments: list[str]) -> None:
    """Print the figures of both halves, or the one that was named."""
    for half in [half for half in HALVES if half in arguments] or HALVES:
        print("\n".join(measure(half, render="--render" in arguments).lines()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
