"""Pages that are empty without scripts, in a real Chromium that reaches only what the guard fetches for it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from actors.website.config import WebsiteSettings
from actors.website.page import Page
from actors.website.visit import fetch_page
from pipeline import submit_many
from sandbox import Sandbox
from tests.place import Place

CHROMIUM = "/usr/bin/chromium"


@pytest.fixture
def homes() -> Iterator[Path]:
    """Where the browsers of a test have their homes; others may run beside it."""
    with tempfile.TemporaryDirectory(prefix="b") as folder:
        yield Path(folder)


@pytest.fixture
def rendering(settings: WebsiteSettings, homes: Path, monkeypatch: pytest.MonkeyPatch) -> WebsiteSettings:
    monkeypatch.setattr(tempfile, "tempdir", str(homes))
    chosen = {"render": True, "browser": CHROMIUM, "browser_seconds": 60.0}
    return settings.model_copy(update=chosen)


def see(settings: WebsiteSettings, path: str) -> Page:
    return asyncio.run(fetch_page(settings.sandbox_url + path, settings))


def browsers(folder: Path) -> list[str]:
    """What runs of those that have their homes in the folder."""
    home = f"HOME={folder}/browser-".encode()
    return [command for command, environment in map(_told, Path("/proc").glob("[0-9]*")) if home in environment]


def _told(process: Path) -> tuple[str, bytes]:
    try:
        return (process / "cmdline").read_text(errors="replace"), (process / "environ").read_bytes()
    except OSError:
        return "", b""


def test_what_scripts_make_is_read(rendering: WebsiteSettings, sandbox: Sandbox, homes: Path) -> None:
    """Title, headings and links of the page that a visitor sees; each part was fetched once, the page itself too."""
    page = see(rendering, "/scripted")
    assert (page.title, page.rendered, page.needs_scripts) == ("Menu of the day", True, False)
    assert [heading.text for heading in page.headings] == ["Soup", "Dessert"]
    assert [link.url for link in page.links_in] == [f"{rendering.sandbox_url}/sites/1/"]
    paths = sandbox.stats()["paths"]
    assert (paths["/scripted"], paths["/scripted/menu.js"], paths["/scripted/menu.json"]) == (1, 1, 1)
    assert browsers(homes) == []


def test_without_the_setting_the_doubt_is_said(settings: WebsiteSettings) -> None:
    """No browser unless one is wanted."""
    page = see(settings, "/scripted")
    assert (page.title, page.rendered, page.needs_scripts) == ("Loading…", False, True)


def test_a_page_reaches_nothing_that_the_guard_refuses(rendering: WebsiteSettings, sandbox: Sandbox) -> None:
    """Neither this machine, nor its network, nor a socket; all of it fails inside the page."""
    page = see(
        rendering, "/scripted/spy?target=http://127.0.0.1:1/&target=http://localhost:5432/&target=http://10.0.0.1/"
    )
    assert page.text == "# Spy\n" + ", ".join(["refused"] * 5) + ", no socket"
    assert set(sandbox.stats()["paths"]) == {"/robots.txt", "/scripted/spy"}


def test_a_page_that_asks_for_ever_is_read_as_it_is(rendering: WebsiteSettings) -> None:
    """It never comes to rest, and does not have to."""
    page = see(rendering.model_copy(update={"browser_seconds": 30.0}), "/scripted/poll")
    assert (page.text, page.rendered) == ("# Live", True)


@pytest.mark.parametrize("away", ["http://10.0.0.1/", "/status/404"])
def test_where_a_page_must_not_or_cannot_lead_is_not_the_page(rendering: WebsiteSettings, away: str) -> None:
    """Neither the browser's own error nor the site's is stored as what was asked for."""
    page = see(rendering, f"/scripted/away?to={away}")
    assert (page.title, page.rendered, page.needs_scripts) == ("Loading…", False, True)


def test_a_page_that_stays_empty_keeps_its_doubt(rendering: WebsiteSettings) -> None:
    """Here it would lead to a file of the machine, which Chromium itself refuses."""
    page = see(rendering, "/scripted/away?to=file:///etc/passwd")
    assert (page.title, page.text, page.rendered, page.needs_scripts) == ("Loading…", "", True, True)


def test_a_page_may_lead_to_another(rendering: WebsiteSettings) -> None:
    """Through redirects too; the address is the last one."""
    page = see(rendering, "/scripted/away?to=/redirect/2")
    assert (page.url, page.rendered, len(page.headings)) == (f"{rendering.sandbox_url}/sites/1/", True, 3)


@pytest.mark.parametrize(
    ("path", "bounds"), [("busy", {"browser_seconds": 6.0}), ("greedy", {"browser_megabytes": 600})]
)
def test_a_page_that_never_ends_is_ended(
    rendering: WebsiteSettings, path: str, bounds: dict[str, float], homes: Path
) -> None:
    """By time or by memory. What there was without scripts is kept, with the doubt, and no process is left."""
    began = monotonic()
    page = see(rendering.model_copy(update=bounds), f"/scripted/{path}")
    print(f"{path}: {monotonic() - began:.1f} s")
    assert (page.title, page.rendered, page.needs_scripts) == ("Loading…", False, True)
    assert browsers(homes) == []


def test_a_worker_renders_beside_its_other_jobs(place: Place, sandbox: Sandbox, homes: Path) -> None:
    """On the event loop that its other pages are fetched on; the browser learns nothing of the worker's environment."""
    rendering = {"PIPELINE_WEBSITE_RENDER": "true", "PIPELINE_WEBSITE_BROWSER": CHROMIUM}
    bounds = {"PIPELINE_WEBSITE_BROWSER_SECONDS": "60", "PIPELINE_SANDBOX_URL": sandbox.url, "TMPDIR": str(homes)}
    place.worker(threads=4, settings={**rendering, **bounds})
    urls = [f"{sandbox.url}/scripted", *(f"{sandbox.url}/sites/{n}/" for n in range(1, 6))]
    rows = place.finished(*submit_many(None, "website", [{"url": url} for url in urls]), timeout=120)
    assert {row["status"] for row in rows} == {"succeeded"}
    [kept] = place.rows("SELECT page FROM website_analyses WHERE url = %s", urls[0])
    assert (kept["page"]["title"], kept["page"]["rendered"]) == ("Menu of the day", True)
    assert browsers(homes) == []
