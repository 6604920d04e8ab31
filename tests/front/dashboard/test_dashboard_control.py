"""What operators change while jobs run, in a real browser."""

from __future__ import annotations

from playwright.sync_api import expect

from pipeline.journey.submit import submit
from tests.front.api.conftest import Serve
from tests.front.dashboard.conftest import OpenPage
from tests.place import Place

IN_FORCE = "SELECT pool, pool_is_set, throttle_count FROM pipeline.phases WHERE queue = 'single.act'"


def test_a_phase_is_paused_and_set_and_a_worker_drained_and_all_of_it_is_in_the_audit(
    place: Place, serve: Serve, open_page: OpenPage
) -> None:
    """What waits goes on when it may; the page says what is in force and what the code declares."""
    place.worker(threads=2)
    page = open_page(f"{serve()}/phases")
    row = page.get_by_role("row").filter(has_text="single › act")
    row.get_by_role("button", name="Pause…").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("a deploy")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("until resumed")
    job = submit(None, "single")
    row.get_by_role("button", name="Set…").click()
    page.get_by_role("dialog").get_by_label("Pool").fill("7")
    page.get_by_role("dialog").get_by_label("Rate").fill("100/min")
    page.get_by_role("dialog").get_by_role("button", name="Set").click()
    expect(row).to_contain_text("7 set here; declared no limit")
    expect(row).to_contain_text("100/min set here; declared no limit")
    assert place.job(job)["status"] == "pending"
    row.get_by_role("button", name="Resume").click()
    expect(row).not_to_contain_text("until resumed")
    assert place.finished(job)[0]["status"] == "succeeded"
    row.get_by_role("button", name="Set…").click()
    page.get_by_role("dialog").get_by_label("As the code declares both").check()
    page.get_by_role("dialog").get_by_role("button", name="Set").click()
    expect(row).not_to_contain_text("set here")
    assert place.row(IN_FORCE) == {"pool": None, "pool_is_set": False, "throttle_count": None}

    page.get_by_role("link", name="Workers", exact=True).click()
    page.get_by_role("button", name="Drain…").click()
    page.get_by_role("dialog").get_by_role("button", name="Drain").click()
    expect(page.get_by_role("table", name="Workers")).to_contain_text("draining")
    expect(page.get_by_role("alert").filter(has_text="All workers are draining")).to_be_visible()
    page.get_by_role("table", name="Workers").get_by_role("link").click()
    expect(page.locator("main")).to_contain_text("Nothing: it can be stopped.")
    page.get_by_role("button", name="Take jobs again").click()
    expect(page.locator("main h1 + .aside .pill")).to_have_text("alive")
    page.get_by_role("link", name="What was done to it").click()
    table = page.get_by_role("table", name="Audit")
    expect(table.locator("tbody tr")).to_have_count(2)
    page.get_by_role("link", name="Show all").click()
    expect(table.locator("tbody tr")).to_have_count(6)
    expect(table).to_contain_text("a deploy")
    expect(table).to_contain_text("dashboard, 127.0.0.1")
