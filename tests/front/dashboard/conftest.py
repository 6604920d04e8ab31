"""Debian's Chromium, and pages that are checked for errors and outside requests when a test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from tests.front.api.conftest import serve  # noqa: F401  the same real server

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]  # fmt: skip
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
def open_page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[OpenPage]:
    """``open_page(url, scheme=…, width=…)``. Afterwards no page may have had an error or asked another server."""
    wrong: list[str] = []
    contexts = []

    def start(url: str, *, scheme: str = "light", width: int = 1280) -> Page:
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 860})  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        origin = "/".join(url.split("/")[:3])
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on(
            "console", lambda said: wrong.append(f"console: {said.text}") if _is_wrong(said.type, said.text) else None
        )
        page.on("request", lambda asked: wrong.append(f"outside: {asked.url}") if _is_outside(asked, origin) else None)
        page.goto(url)
        return page

    yield start
    for context in contexts:
        context.close()
    assert wrong == []


def _is_wrong(kind: str, text: str) -> bool:
    # Chromium itself logs every answer that is an error, such as the 401 before a sign-in.
    return kind in ("error", "warning") and not text.startswith("Failed to load resource")


def _is_outside(asked: Request, origin: str) -> bool:
    return not asked.url.startswith(f"{origin}/")
