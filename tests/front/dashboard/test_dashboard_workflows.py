"""A workflow's page, schedules, keys and batches, the clock and the keyboard, in a real browser."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from pipeline.journey.submit import open_batch, seal_batch, submit, submit_many
from pipeline.scheduling import schedule
from tests.db import steps
from tests.front.api.conftest import Serve
from tests.front.dashboard.conftest import OpenPage
from tests.front.dashboard.test_dashboard_safety import visit
from tests.front.waiting import parent
from tests.place import Place

# As if the jobs had ended in the minute before.
EARLIER = "date_trunc('minute', now() - interval '10 seconds') - interval '1 second'"
AN_HOUR_AGO = f"UPDATE pipeline.attempts SET finished_at = {EARLIER}, started_at = {EARLIER} - interval '2 seconds'"
ENDED = f"UPDATE pipeline.jobs SET completed_at = {EARLIER}, created_at = {EARLIER} - interval '1 minute' WHERE completed_at IS NOT NULL"


def test_a_workflow_is_seen_with_its_phases_schedules_and_hooks_and_a_schedule_is_steered(
    place: Place, serve: Serve, open_page: OpenPage
) -> None:
    """What waits, how long phases and jobs took; each leads on, and back."""
    place.db.execute(
        "INSERT INTO pipeline.hooks (workflow, no, event, submits) VALUES ('triple', 1, 'failed', 'single')"
    )
    schedule(None, "triple", "nightly", "0 3 * * *", timezone="Europe/Paris")
    first = steps.held(place.db, "triple")
    steps.complete(place.db, first)
    steps.complete(place.db, steps.hold(place.db, first.job))
    assert steps.complete(place.db, steps.hold(place.db, first.job))["verdict"] == "done"
    with place.db.transaction():
        place.db.execute(AN_HOUR_AGO.encode())
        place.db.execute(ENDED.encode())
        place.rows("SELECT pipeline.roll_up()")
    place.worker()
    page = open_page(f"{serve()}/workflows")
    page.get_by_role("link", name="triple", exact=True).click()
    nodes = page.get_by_role("list", name="Phases of triple, in their order").get_by_role("listitem")
    expect(nodes).to_have_count(5)
    expect(nodes.nth(0)).to_contain_text("schedule nightly")
    for n, phase in enumerate(("first", "second", "third"), 1):
        expect(nodes.nth(n).get_by_role("link", name=phase)).to_be_visible()
        expect(nodes.nth(n)).to_contain_text(re.compile(r"p50(1\.\d|2\.\d|3\.0) s"))
    expect(nodes.nth(4)).to_contain_text("single when failed")
    expect(page.locator("main .facts")).to_contain_text(
        re.compile(r"Half took less than(4\d|5\d|6\d|7\d) s|Half took less than1 min")
    )

    nodes.nth(0).get_by_role("link", name="nightly").click()
    expect(page.get_by_role("region", name="Next moments").get_by_role("listitem")).to_have_count(8)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("main h1 + .aside .pill")).to_have_text("paused")
    expect(page.get_by_role("region", name="Next moments")).to_contain_text("None while it is paused.")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("main h1 + .aside .pill")).to_have_text("active")
    page.get_by_role("button", name="Run now").click()
    page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]{36}$"))
    expect(page.locator("main h1 .pill")).to_have_text("succeeded")
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="triple").click()
    expect(page.locator("main h1")).to_have_text("triple")


def test_batches_and_jobs_and_keys_lead_to_each_other(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """From a child to its batch and its parent; a key is paused, weighed and resumed."""
    waits, children = parent(place, 3)
    batch = open_batch(None)
    [job] = submit_many(None, "single", [{}], batch=batch)
    seal_batch(None, batch)
    place.db.execute("INSERT INTO pipeline.turns (workflow, field, per_key) VALUES ('single', 'customer', 2)")
    place.db.execute(
        "UPDATE pipeline.outbox SET turns_id = t.id, key = 'acme', has_turn = true FROM pipeline.turns t"
        " WHERE job_id = %s AND t.workflow = 'single'",
        (job,),
    )
    page = open_page(f"{serve()}/jobs/{children[0]}")
    page.locator(".facts a[href^='/batches/']").click()
    expect(page.get_by_role("table", name="Jobs of the batch").locator("tbody tr")).to_have_count(3)
    page.locator(".facts").get_by_role("link", name=f"…{str(waits)[-8:]}").click()
    expect(page.locator("main h1")).to_contain_text(str(waits))
    visit(page, "/workflows/single/keys")
    row = page.get_by_role("row").filter(has_text="acme")
    row.get_by_role("button", name="Pause…").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("until resumed")
    row.get_by_role("button", name="Weigh…").click()
    page.get_by_role("dialog").get_by_label("Jobs a turn").fill("5")
    page.get_by_role("dialog").get_by_role("button", name="Set").click()
    expect(row.get_by_role("cell").nth(4)).to_have_text("5")
    row.get_by_role("button", name="Resume").click()
    expect(row).to_contain_text("open")
    assert [row["action"] for row in place.rows("SELECT action FROM pipeline.audit ORDER BY id")] == [
        "pause key",
        "weigh key",
        "resume key",
    ]


def test_times_are_told_in_utc_and_keys_search_move_and_explain(
    place: Place, serve: Serve, open_page: OpenPage
) -> None:
    """The choice stays; keys do nothing in a field, and can be turned off."""
    newest = [submit(None, "single", {"n": n}) for n in range(3)][::-1]
    page = open_page(f"{serve()}/jobs")
    links = page.get_by_role("table", name="Jobs").locator("tbody a")
    expect(links).to_have_count(3)
    page.keyboard.press("j")
    expect(links.nth(0)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main h1")).to_contain_text(str(newest[1]))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the job's id").click()
    assert page.evaluate("navigator.clipboard.readText()") == str(newest[1])
    page.keyboard.press("/")
    field = page.get_by_role("searchbox")
    expect(field).to_be_focused()
    page.keyboard.type("j?/")
    expect(field).to_have_value("j?/")

    page.locator("main h1").focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_contain_text("search jobs")
    dialog.get_by_role("checkbox").uncheck()
    dialog.get_by_role("button", name="Close").click()
    page.keyboard.press("j")
    expect(page.locator("main tbody a:focus")).to_have_count(0)

    page.get_by_role("button", name="Local times").click()
    expect(page.get_by_role("button", name="UTC times")).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(page.get_by_role("button", name="UTC times")).to_be_visible()
    expect(page.locator("main time").first).to_have_attribute("title", re.compile(r"\d\d:\d\d:\d\d UTC$"))
