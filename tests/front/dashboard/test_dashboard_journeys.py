"""What the person on call does, in a real browser, on real servers with a real worker."""

from __future__ import annotations

import json
import re
from uuid import UUID

import pytest
from playwright.sync_api import Page, expect
from pydantic import SecretStr

from pipeline.declare import extension
from pipeline.declare.extension import Extension
from pipeline.front.api import events
from pipeline.journey.submit import submit, submit_many
from tests.front.api.conftest import OPERATOR, TOKENS, VIEWER, Serve
from tests.front.dashboard.conftest import OpenPage
from tests.place import Place


def submit_in(page: Page, workflow: str, body: dict[str, object]) -> UUID:
    """Fill in the form; the page goes to the new job."""
    page.get_by_role("button", name="Submit job").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Workflow").select_option(workflow)
    dialog.get_by_label("Body").fill(json.dumps(body))
    dialog.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]{36}$"))
    return UUID(page.url[-36:])


def state(page: Page, name: str) -> None:
    expect(page.locator("main h1 .pill")).to_have_text(name)


def test_a_job_is_submitted_and_followed_live_to_its_end(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """Without a reload: pending, running, succeeded; its time is drawn, and its end is said to a screen reader."""
    page = open_page(serve())
    expect(page.locator(".stream")).to_have_text("live")
    page.evaluate("window.stayed = true")
    told = place.folder / "told"
    job = submit_in(page, "single", {"do": "until_told", "file": str(told)})
    state(page, "pending")
    place.worker()
    state(page, "running")
    told.touch()
    state(page, "succeeded")
    expect(page.locator(".timeline .stretch.running")).to_have_count(1)
    expect(page.get_by_role("status").filter(has_text="succeeded")).to_be_visible()
    expect(page.get_by_role("table", name="Attempts").locator("tbody .pill")).to_have_text(["succeeded"])
    assert page.evaluate("window.stayed") is True
    assert place.job(job)["status"] == "succeeded"


def test_a_failure_is_found_in_its_group_and_a_canary_goes_before_the_rest(
    place: Place, serve: Serve, open_page: OpenPage
) -> None:
    """A table is missing and jobs fail; it is fixed, one is tried, then all. The page sees each step by itself."""
    place.db.execute("ALTER TABLE ledger RENAME TO ledger_away")
    jobs = submit_many(None, "single", [{"order": 60 + n} for n in range(3)])
    place.worker()
    place.finished(*jobs)
    place.db.execute("ALTER TABLE ledger_away RENAME TO ledger")
    page = open_page(f"{serve()}/dead")
    card = page.get_by_role("article")
    expect(card.locator(".jobs")).to_have_text("3 jobs")
    expect(page.get_by_role("link", name="Dead letters 3")).to_be_visible()
    card.get_by_text("Samples").click()
    expect(card.locator(".sample")).to_have_count(3)
    expect(card.locator(".sample").filter(has_text='"order": 62')).to_have_count(1)
    card.get_by_role("button", name="Replay one as canary").click()
    page.get_by_role("dialog").get_by_role("button", name="Replay one").click()
    expect(card.locator(".canary")).to_contain_text("The canary succeeded.")
    page.reload()
    expect(card.locator(".canary")).to_contain_text("The canary succeeded.")
    expect(card.locator(".jobs")).to_have_text("2 jobs")
    assert sorted(place.job(job)["status"] for job in jobs) == ["failed", "failed", "succeeded"]
    card.get_by_role("button", name="Replay the rest…").click()
    page.get_by_label("Jobs per second").fill("50")
    page.get_by_role("dialog").get_by_role("button", name="Replay them").click()
    expect(page.get_by_text("Replaying 2 jobs at 50 a second.")).to_be_visible()
    expect(page.get_by_text("No dead letters.")).to_be_visible()
    assert [job["error_message"] for job in place.finished(*jobs) if job["status"] != "succeeded"] == []


def test_a_group_is_given_up_with_a_reason(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """Without one the form does not go out."""
    [job] = submit_many(None, "single", [{}])
    place.rows("SELECT pipeline.undeliverable(%s, 1, 'ValueError: no price (parse.py:12)')", job)
    page = open_page(f"{serve()}/dead")
    page.get_by_role("button", name="Discard…").click()
    page.get_by_role("button", name="Discard them").click()
    expect(page.get_by_label("Reason")).to_be_focused()
    page.get_by_label("Reason").fill("the shop closed")
    page.get_by_role("button", name="Discard them").click()
    expect(page.get_by_text("Discarded 1 job.")).to_be_visible()
    assert place.job(job)["error_message"].startswith("the shop closed")


def test_a_job_is_cancelled_with_the_keyboard_alone(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """Escape changes nothing and gives the focus back; Enter cancels, and the reason is kept."""
    job = submit(None, "single")
    page = open_page(f"{serve()}/jobs/{job}")
    state(page, "pending")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    for _ in range(4):  # the two links above the title, copying the id, then the button
        page.keyboard.press("Tab")
    button = page.get_by_role("button", name="Cancel")
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
    assert place.job(job)["status"] == "pending"
    page.keyboard.press("Enter")
    page.get_by_label("Reason").fill("not needed any more")
    page.keyboard.press("Enter")
    state(page, "cancelled")
    assert (place.job(job)["status"], place.job(job)["error_message"]) == ("cancelled", "not needed any more")


def test_what_is_shown_can_be_shared_by_its_address(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """Filters stand in the query string and hold in another browser; an id leads to its job."""
    jobs = submit_many(None, "single", [{}] * 2)
    submit_many(None, "triple", [{}])
    place.rows("SELECT pipeline.undeliverable(%s, 1, 'x')", jobs[0])
    page = open_page(f"{serve()}/jobs")
    rows = page.get_by_role("table", name="Jobs").locator("tbody tr")
    expect(rows).to_have_count(3)
    page.get_by_label("Workflow").select_option("single")
    expect(rows).to_have_count(2)
    page.get_by_role("link", name="failed", exact=True).click()
    expect(rows).to_have_count(1)
    assert page.url.endswith("/jobs?workflow=single&status=failed")
    other = open_page(page.url)
    expect(other.get_by_role("table", name="Jobs").locator("tbody tr")).to_have_count(1)
    expect(other.get_by_label("Workflow")).to_have_value("single")
    page.go_back()
    expect(rows).to_have_count(2)
    page.get_by_label("Job id").fill(str(jobs[1]))
    page.keyboard.press("Enter")
    expect(page.locator("main h1")).to_contain_text(str(jobs[1]))


def test_tokens_bring_a_sign_in_and_a_viewer_only_looks(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """A wrong token is told; after signing out nothing is shown."""
    job = submit(None, "single")
    page = open_page(f"{serve(api_tokens=SecretStr(TOKENS))}/jobs/{job}")
    page.get_by_label("Token").fill("no such token at all")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").filter(has_text="not known")).to_be_visible()
    page.get_by_label("Token").fill(VIEWER)
    page.keyboard.press("Enter")
    state(page, "pending")
    expect(page.get_by_text("read only")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Token").fill(OPERATOR)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Submit job")).to_be_visible()


def test_the_page_works_without_the_stream_and_says_what_it_cannot_read(
    place: Place, serve: Serve, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused as a listener it asks by itself; what it showed stays, marked as old, until the server answers again."""
    submit(None, "single")
    page = open_page(f"{serve()}/jobs")
    rows = page.get_by_role("table", name="Jobs").locator("tbody tr")
    expect(rows).to_have_count(1)
    page.route("**/v1/jobs*", lambda route: route.abort())
    expect(page.get_by_text("Not up to date")).to_be_visible()
    expect(rows).to_have_count(1)
    page.unroute("**/v1/jobs*")
    expect(page.get_by_text("Not up to date")).to_have_count(0)
    monkeypatch.setattr(events, "LISTENERS", 0)
    page.reload()
    expect(page.locator(".stream")).to_have_text("every 5 s")
    submit(None, "single")
    expect(rows).to_have_count(2)


def nothing_left(connection: object, job_id: UUID) -> int:
    return 0


def test_results_and_outputs_of_any_kind_are_shown(
    place: Place, serve: Serve, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that are zero or empty."""
    shop = Extension("shop", outputs={"single": f"{__name__}:nothing_left"})
    monkeypatch.setattr(extension, "_extensions", {"shop": shop})
    job = submit(None, "single")
    results = {"count": 0, "names": ["a", 2], "said": "yes", "none": []}
    place.db.execute("UPDATE pipeline.jobs SET result = %s WHERE id = %s", (json.dumps(results), job))
    page = open_page(f"{serve()}/jobs/{job}")
    shown = page.get_by_role("region", name="Results by phase").locator("pre")
    assert json.loads(shown.inner_text()) == results
    expect(page.get_by_role("region", name="Stored by the workflow").locator("pre")).to_have_text("0")


def test_why_a_job_failed_is_two_clicks_away_from_its_group(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """The dead letter's cause, its sample, and there the traceback and the last lines; other attempts on demand."""
    place.worker()
    job = submit(None, "single", {"do": "speak", "until": 99})
    place.finished(job)
    page = open_page(f"{serve()}/dead")
    expect(page.get_by_role("article")).to_contain_text("ValueError at actions.py:")
    page.get_by_text("Samples").click()
    page.get_by_role("link", name=str(job)).click()
    why = page.get_by_role("region", name="Error")
    expect(why.get_by_label("Traceback")).to_contain_text("ValueError: no price, try 3")
    expect(why.get_by_label("Last lines")).to_contain_text("structured words colour=red")
    row = page.get_by_role("table", name="Attempts").get_by_role("row").filter(has_text="retried").last
    row.get_by_role("button", name="Show log").click()
    expect(row.get_by_label("Traceback")).to_contain_text("ValueError: no price, try 1")
    row.get_by_role("button", name="Hide log").click()
    expect(row.get_by_label("Traceback")).to_have_count(0)
