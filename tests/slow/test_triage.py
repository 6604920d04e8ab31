"""The person on call: thirty thousand failed jobs of five causes, two hundred thousand mistaken ones, in a real browser.

PICTURES=docs writes the pictures of the dashboard's page there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from playwright.sync_api import Page, expect

from pipeline.scheduling import schedule
from tests.front.api.conftest import Serve
from tests.front.dashboard.conftest import OpenPage
from tests.place import ROOT, Place
from tests.triage_workflow import CAUSES

FAILED = int(os.environ.get("TRIAGE_FAILED", "30000"))
MISTAKEN = int(os.environ.get("TRIAGE_MISTAKEN", "200000"))
PATIENCE = 1800
MANY = """SELECT count(*) FROM pipeline.submit_many('listings', ARRAY(SELECT jsonb_build_object(
          'number', n, 'cause', n %% 5, 'repaired', %s::text || n %% 5) FROM generate_series(%s::integer, %s::integer) n), p_tags => %s)"""
STATUS = "SELECT count(*) FROM pipeline.jobs WHERE workflow = 'listings' AND status = '{}'"
# No notices of what was done before; where this machine has the files is nobody's business.
TIDY = """folder => {
    scrollTo(0, 0);
    for (const note of document.querySelectorAll("#notices button")) note.click();
    for (const text of document.querySelectorAll("pre")) text.textContent = text.textContent.replaceAll(folder, "");
}"""
Snap = Callable[..., None]


@pytest.fixture
def snap(tmp_path: Path) -> Snap:
    """``snap(page, name)`` keeps what the page shows."""
    folder = Path(os.environ.get("PICTURES", tmp_path))

    def take(page: Page, name: str, *, height: int = 900) -> None:
        width = page.viewport_size["width"] if page.viewport_size else 1280
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate(TIDY, f"{ROOT}/")
        page.screenshot(path=folder / f"{name}.png")

    return take


@pytest.fixture
def shop(users: Place) -> Place:
    """A worker of the workflow, with default settings."""
    users.load("tests.triage_workflow")
    schedule(None, "listings", "every-night", "0 3 * * *", timezone="Europe/Paris", body={"number": 0, "cause": 9})
    users.worker(threads=8)
    return users


def submit(place: Place, first: int, last: int, tag: str) -> None:
    for number in range(first, last, 10_000):
        place.db.execute(MANY, (str(place.folder / "repaired-"), number, min(number + 9_999, last - 1), [tag]))


def say_yes(page: Page, name: str, **fields: str) -> None:
    dialog = page.get_by_role("dialog")
    for label, value in fields.items():
        dialog.get_by_label(label.replace("_", " ")).fill(value)
    dialog.get_by_role("button", name=name).click()
    expect(dialog).to_have_count(0)


@pytest.mark.slow
@pytest.mark.timeout(2 * PATIENCE)
def test_thirty_thousand_failed_jobs_of_five_causes_are_triaged(
    shop: Place,
    serve: Serve,
    open_page: OpenPage,
    snap: Snap,
) -> None:
    """Grouped, a canary, one edited, replayed at a rate, stopped half-way, the rest discarded."""
    submit(shop, 0, FAILED, "import")
    shop.until(lambda: shop.count(STATUS.format("failed")) == FAILED, PATIENCE, "all of them to fail")
    page = open_page(f"{serve()}/", width=1440)
    expect(page.get_by_role("table", name="Phases")).to_contain_text("price")

    _look_at_a_traceback(page, snap)
    _edit_and_replay(page)
    (shop.folder / "repaired-1").touch()
    _send_a_canary_and_the_rest(page)
    _stop_half_way(shop, page, snap)
    _discard_what_is_left(shop, page)
    _take_pictures_of_the_workflow(page, snap)


def _look_at_a_traceback(page: Page, snap: Snap) -> None:
    """From what is wrong to the cause in three clicks: dead letters, samples, a job."""
    page.get_by_role("link", name=re.compile("^Dead letters")).first.click()
    cards = page.get_by_role("article")
    expect(cards).to_have_count(CAUSES)
    snap(page, "dashboard-dead", height=1000)
    card = cards.filter(has_text="KeyError")
    card.get_by_text("Samples").click()
    card.locator(".sample a").first.click()
    error = page.get_by_role("region", name="Error")
    expect(error).to_contain_text("triage_workflow.py")
    expect(error).to_contain_text("of shop 0")
    snap(page, "dashboard-job", height=1150)


def _edit_and_replay(page: Page) -> None:
    page.get_by_role("button", name="Edit and replay…").click()
    body = page.get_by_role("dialog").get_by_label("Body")
    body.fill(body.input_value().replace('"number"', '"price": "3.50", "number"').replace('"cause": 0', '"cause": 9'))
    page.get_by_role("dialog").get_by_role("button", name="Replay the job").click()
    expect(page.locator("main h1 .pill")).to_have_text("succeeded")


def _send_a_canary_and_the_rest(page: Page) -> None:
    page.get_by_role("link", name=re.compile("^Dead letters")).first.click()
    card = page.get_by_role("article").filter(has_text="ValueError")
    card.get_by_role("button", name="Replay one as canary").click()
    say_yes(page, "Replay one")
    expect(card.locator(".canary")).to_contain_text("The canary succeeded.")
    card.locator(".canary").get_by_role("button", name="Dismiss").click()
    expect(card.locator(".canary")).to_have_count(0)
    card.get_by_role("button", name="Replay all…").click()
    say_yes(page, "Replay them", Jobs_per_second=str(max(FAILED // 300, 5)), Reason="the parser is repaired")


def _stop_half_way(shop: Place, page: Page, snap: Snap) -> None:
    under_way = page.locator("article.bulk")
    shop.until(lambda: shop.count(STATUS.format("succeeded")) > min(500, FAILED // 20), PATIENCE, "some to be replayed")
    snap(page, "dashboard-triage", height=1000)
    under_way.get_by_role("button", name="Stop").click()
    expect(under_way).to_have_count(0)
    done = shop.count("SELECT max(done) FROM pipeline.bulk_actions")
    assert 0 < done < FAILED // CAUSES


def _discard_what_is_left(shop: Place, page: Page) -> None:
    cards = page.locator("article.card:not(.bulk)")
    for _ in range(CAUSES):
        left = cards.count()
        cards.first.get_by_role("button", name="Discard…").click()
        say_yes(page, "Discard them", Reason="too old to matter")
        expect(cards).to_have_count(left - 1, timeout=PATIENCE * 1000)
    expect(page.get_by_text("No dead letters.")).to_be_visible()
    assert shop.count(STATUS.format("failed")) == 0
    assert shop.count(STATUS.format("cancelled")) == FAILED - shop.count(STATUS.format("succeeded"))


def _take_pictures_of_the_workflow(page: Page, snap: Snap) -> None:
    page.goto(f"{page.url.rsplit('/', 1)[0]}/workflows/listings?hours=1")
    expect(page.get_by_role("list", name="Phases of listings, in their order")).to_be_visible()
    snap(page, "dashboard-workflow", height=1050)


@pytest.mark.slow
@pytest.mark.timeout(2 * PATIENCE)
def test_two_hundred_thousand_mistaken_jobs_are_cancelled_by_one_action(
    shop: Place,
    serve: Serve,
    open_page: OpenPage,
    snap: Snap,
) -> None:
    """While their phase is paused, and one of them is held by somebody; the good ones run when it is resumed."""
    page = open_page(f"{serve()}/phases", width=1440)
    row = page.get_by_role("row").filter(has_text="fetch")
    row.get_by_role("button", name="Pause…").click()
    say_yes(page, "Pause", Reason="a mistaken import")
    expect(row).to_contain_text("until resumed")
    submit(shop, 0, MISTAKEN, "mistake")
    good = shop.rows("SELECT pipeline.submit('listings', '{\"number\": 1, \"cause\": 9}') AS id")[0]["id"]
    page.get_by_role("link", name="Jobs", exact=True).click()
    page.get_by_role("searchbox").fill("#mistake")
    page.keyboard.press("Enter")
    page.wait_for_url("**tag=mistake**")
    page.get_by_role("button", name="Cancel all…").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"Cancel {MISTAKEN:,} jobs?", timeout=120_000)
    held = shop.rows("SELECT id FROM pipeline.jobs WHERE 'mistake' = ANY (tags) ORDER BY id DESC LIMIT 1")[0]["id"]
    with psycopg.connect(shop.database_url) as somebody:
        somebody.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (held,))
        say_yes(page, "Cancel them", Reason="imported by mistake")
        page.wait_for_url("**/bulk")
        card = page.locator("article.bulk")
        expect(card).to_contain_text("1 is held by somebody else", timeout=PATIENCE * 1000)
        _picture_half_way(shop, page, snap)
        expect(card).to_contain_text(f"{MISTAKEN - 1:,} done", timeout=PATIENCE * 1000)
    expect(card).to_contain_text(f"{MISTAKEN:,} done", timeout=PATIENCE * 1000)
    assert shop.count(STATUS.format("cancelled")) == MISTAKEN
    assert shop.job(good)["status"] == "pending"

    _resume_drain_and_look_around(shop, page, snap, good)


def _picture_half_way(shop: Place, page: Page, snap: Snap) -> None:
    shop.until(lambda: shop.count(STATUS.format("cancelled")) > MISTAKEN // 4, PATIENCE, "a part to be cancelled")
    snap(page, "dashboard-bulk", height=560)


def _resume_drain_and_look_around(shop: Place, page: Page, snap: Snap, good: UUID) -> None:
    page.get_by_role("link", name="Phases", exact=True).click()
    row = page.get_by_role("row").filter(has_text="fetch")
    row.get_by_role("button", name="Resume").click()
    assert shop.finished(good, timeout=PATIENCE)[0]["status"] == "succeeded"
    page.get_by_role("link", name="Workers", exact=True).click()
    page.get_by_role("button", name="Drain…").first.click()
    say_yes(page, "Drain")
    expect(page.get_by_role("table", name="Workers")).to_contain_text("draining")
    snap(page, "dashboard-workers", height=560)
    page.get_by_role("link", name="Schedules", exact=True).click()
    page.get_by_role("link", name="every-night").click()
    expect(page.get_by_role("region", name="Next moments").get_by_role("listitem")).to_have_count(8)
    snap(page, "dashboard-schedule", height=700)
    page.get_by_role("link", name="Audit", exact=True).click()
    expect(page.get_by_role("table", name="Audit")).to_contain_text("imported by mistake")
    snap(page, "dashboard-audit", height=560)
