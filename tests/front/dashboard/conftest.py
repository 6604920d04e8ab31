"""Debian's Chromium, and pages that are checked for errors and outside requests when a test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.front.api.conftest import serve  # noqa: F401  the same real server

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
OpenPage = Callable[..., Page]
expect.set_options(timeout=15_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for the module: while it lives, nobody else can run an event loop in this thread."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """``open_page(url, scheme=…, width=…)``. Afterwards no page may have had an error or asked another server."""
    wrong: list[str] = []
    contexts: list[BrowserContext] = []

    def start(url: str, *, scheme: str = "light", width: int = 1280) -> Page:
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 860})  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        origin = "/".join(url.split("/")[:3])
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("console", lambda said: wrong.extend(_complaints(said)))
        page.on("request", lambda asked: wrong.extend(_outside(asked, origin)))
        page.goto(url)
        return page

    yield start
    for context in contexts:
        context.close()
    assert wrong == []


def _complaints(said: ConsoleMessage) -> list[str]:
    # Chromium itself logs every answer that is an error, such as the 401 before a sign-in.
    ours = said.type in ("error", "warning") and not said.text.startswith("Failed to load resource")
    return [f"console: {said.text}"] if ours else []


def _outside(asked: Request, origin: str) -> list[str]:
    return [] if asked.url.startswith(f"{origin}/") else [f"outside: {asked.url}"]
