"""Hostile data does no harm, everybody can use it, and nothing comes from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from pipeline.declare.extension import extensions
from pipeline.front.dashboard.routes import FOLDER, VIEWS
from pipeline.journey.submit import open_batch, seal_batch, submit, submit_many
from pipeline.scheduling import schedule
from tests.front.api.conftest import Serve
from tests.front.dashboard.conftest import OpenPage
from tests.front.waiting import end, parent
from tests.place import ROOT, Place

SCRIPT = "<script>window.harmed = 1</script><img src=x onerror='window.harmed = 1'>"
PHONE = 390
WIDTHS = (360, 768, 1440, 2560)
# The dashboard's own, and those that the workflows of this repository add.
FILES = sorted([*FOLDER.rglob("*.*"), *(ROOT / "actors").glob("*/dashboard/*.*")])


def furnish(place: Place) -> dict[str, object]:
    """Something in every view: a failed job, one with children and events, a source, a batch, a project, a worker,
    a schedule, a hook, a key, a rate limit, something done in bulk. What the addresses of views are made with.
    """
    batch = open_batch(None)
    jobs = submit_many(None, "single", [{"n": n} for n in range(3)], batch=batch)
    seal_batch(None, batch)
    submit(None, "pooled")
    place.rows("SELECT pipeline.undeliverable(%s, 1, 'ValueError: no price (parse.py:12)')", jobs[0])
    place.rows(
        "INSERT INTO pipeline.workers (id, host, pid, threads, queues) VALUES ('w', 'h', 1, 8, '{a,b,c,d}') RETURNING no"
    )
    place.rows(
        "INSERT INTO sources (name, adapter, base_url, rate_limit_per_minute, last_error, last_failure_at)"
        " VALUES ('coins', 'items-api', 'http://127.0.0.1:9/', 30, 'it was away', now()) RETURNING id"
    )
    place.rows("SELECT pipeline.roll_up()")
    place.rows("SELECT pipeline.record('ada', 'api', '10.0.0.7', 'cancel', NULL, 'a mistake', 2, %s)", jobs[:2])
    project = place.row("INSERT INTO projects (name) VALUES ('coins of Rome') RETURNING id")
    assert project is not None
    waits, children = parent(place, 3)
    end(place, children[0], failed=True)
    place.rows("SELECT pipeline.signal(%s, 'approved', '{}')", waits)
    schedule(None, "single", "nightly", "0 3 * * *", timezone="Europe/Paris")
    place.db.execute(
        "INSERT INTO pipeline.hooks (workflow, no, event, submits) VALUES ('triple', 1, 'failed', 'single')"
    )
    place.db.execute("INSERT INTO pipeline.turns (workflow, field, per_key) VALUES ('single', 'customer', 2)")
    place.db.execute(
        "UPDATE pipeline.outbox SET turns_id = t.id, key = 'acme', has_turn = true FROM pipeline.turns t"
        " WHERE job_id = %s AND t.workflow = 'single'",
        (jobs[1],),
    )
    place.rows("SELECT pipeline.set_rate_limit('bazaar', 5, 10)")
    place.rows("SELECT pipeline.pause_rate_limit('bazaar', now() + interval '1 hour', 'breaker')")
    place.rows("SELECT pipeline.begin_bulk('ada', 'api', NULL, 'replay', '{\"status\": \"failed\"}', 1)")
    return {
        "job_id": jobs[0],
        "id": project["id"],
        "worker_id": "w",
        "batch_id": batch,
        "workflow": "single",
        "schedule": "nightly",
        "waits": waits,
    }


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def visit(page: Page, path: str) -> None:
    """Go to another view as a link does: the page, and axe-core in it, stay."""
    page.evaluate("path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')) }", path)
    expect(page.locator("main h1:focus")).to_be_visible()


def findings(page: Page, where: str, *rules: str) -> list[str]:
    """What axe-core calls serious or critical."""
    options = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
    found = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [
        f"{where}: {one['id']}: {one['help']} {[node['html'][:160] for node in one['nodes'][:3]]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("half", [0, 1])
def test_every_view_is_accessible_in_light_and_dark_and_fits_every_window(
    place: Place, serve: Serve, open_page: OpenPage, half: int
) -> None:
    """With something in every view: no serious finding of axe-core, and nothing to be scrolled sideways."""
    known = furnish(place)
    page = open_page(f"{serve()}/?hours=1")
    expect(page.locator("main h1")).to_be_visible()
    page.evaluate(Axe().axe_script)
    found: list[str] = []
    added = [view.path for extension in extensions() for view in extension.views]
    views = [*VIEWS, *added, "/jobs/{waits}", "/jobs/{waits}/children"]
    for view in views[half::2]:
        path = view.format(**known)
        visit(page, path)
        found += findings(page, path)
        # One project's number is no source's.
        lost = view in VIEWS and page.locator("main > .missing").count()
        found += [f"{path} is not found"] if lost else []
        page.emulate_media(color_scheme="dark")
        found += findings(page, f"{path} in the dark", "color-contrast")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 860})
            found += [f"{path} at {width}: {overflow(page)} pixels too wide"] if overflow(page) > 0 else []
        page.set_viewport_size({"width": 1280, "height": 860})
        page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": PHONE, "height": 860})
    found += findings(page, "the last view on a phone")
    page.get_by_role("button", name="Submit job").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    found += findings(page, "the form in the dark")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Keys").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert found + findings(page, "the list of keys") == []


def test_hostile_payloads_and_huge_errors_do_no_harm(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """They are text, cut short, with the rest on demand; the page keeps its width, also on a phone."""
    [job] = submit_many(None, "single", [{SCRIPT: SCRIPT, "long": "W" * 20_000}])
    place.rows("SELECT pipeline.signal(%s, %s, to_jsonb(%s::text))", job, SCRIPT, SCRIPT + "W" * 20_000)
    place.rows("SELECT pipeline.undeliverable(%s, 1, %s)", job, SCRIPT + "E" * 1_000_000)
    base = serve()
    for width in (1280, PHONE):
        page = open_page(f"{base}/jobs/{job}", width=width)
        error = page.get_by_role("region", name="Error")
        expect(error).to_contain_text("<script>window.harmed")
        expect(error.locator(".whole")).to_be_hidden()
        error.get_by_text("Show more").click()
        expect(error.locator(".whole")).to_be_visible()
        expect(page.get_by_role("region", name="Body")).to_contain_text("onerror=")
        assert len(page.content()) < 100_000
        for path in (None, "/jobs", "/dead"):
            if path:
                page.goto(base + path)
                expect(page.locator("main")).to_contain_text("<script>window.harmed")
            assert overflow(page) <= 0, (path, width)
            assert page.evaluate("window.harmed") is None
            expect(page.locator("main :is(img, script)")).to_have_count(0)


def test_an_opened_text_stays_open_while_the_page_brings_itself_up_to_date(
    place: Place, serve: Serve, open_page: OpenPage
) -> None:
    """What the reader opened, and what they typed, is theirs."""
    [job] = submit_many(None, "single", [{}])
    place.rows("SELECT pipeline.undeliverable(%s, 1, %s)", job, "E" * 2000)
    page = open_page(f"{serve()}/jobs/{job}")
    page.get_by_role("region", name="Error").get_by_text("Show more").click()
    place.rows("SELECT pipeline.discard(%s, 'seen')", job)
    expect(page.locator("main h1 .pill")).to_have_text("cancelled")
    expect(page.get_by_role("region", name="Error").locator(".whole")).to_be_visible()


def test_the_policy_allows_this_servers_files_only(serve: Serve) -> None:
    """For every view and file; what is no view or file is a problem in JSON."""
    with httpx.Client(base_url=serve()) as api:
        for path in ("/", "/jobs/x", "/static/main.js", "/static/style/base.css"):
            answer = api.get(path)
            policy = answer.headers["content-security-policy"]
            assert (answer.status_code, "default-src 'none'" in policy, "unsafe" in policy) == (200, True, False), path
            assert "require-trusted-types-for 'script'" in policy and "script-src 'self';" in policy
        for path in ("/static/../routes.py", "/static/%2e%2e/routes.py", "/static/", "/nothing"):
            assert api.get(path).status_code == 404, path


def test_the_page_asks_for_all_its_modules_at_once() -> None:
    """Otherwise they are found one after another, each a round trip later."""
    asked = re.findall(r'rel="modulepreload" href="/static/([^"]+)"', (FOLDER / "index.html").read_text())
    assert asked == sorted(str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.js"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_files_are_small_and_bring_nothing_from_elsewhere(file: Path) -> None:
    """No markup from data, no inline script or style, no other address than this server's."""
    text = file.read_text()
    assert len(text.splitlines()) <= 250
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
    assert not re.search(r" style=| on\w+=\"|<script>|<style", text)
    assert [found for found in re.findall(r"https?://[^\s\"'`<)]+", text) if found not in PLAIN] == []


PLAIN = {"http://www.w3.org/2000/svg", "https://example.org"}
