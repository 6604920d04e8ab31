"""Finding jobs and acting on all that match, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from pipeline.front.api import events
from pipeline.journey.submit import submit, submit_many
from tests.db import steps
from tests.front.api.conftest import Serve
from tests.front.dashboard.conftest import OpenPage
from tests.place import Place


def test_jobs_are_found_and_all_that_match_are_cancelled(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """By their tag; the dialog says how many, and the others stay."""
    wrong = submit_many(None, "single", [{}] * 60, tags=["wrong"])
    good = submit(None, "single")
    page = open_page(f"{serve()}/jobs?status=unfinished")
    page.get_by_placeholder("Job id, #tag or error").fill("#wrong")
    page.keyboard.press("Enter")
    page.wait_for_url("**tag=wrong**")
    page.get_by_role("button", name="Cancel all…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Cancel 60 jobs?")
    dialog.get_by_label("Reason").fill("a mistake")
    dialog.get_by_role("button", name="Cancel them").click()
    expect(page.get_by_text("60 jobs cancelled.")).to_be_visible()
    assert {place.job(job)["error_message"] for job in wrong} == {"a mistake"}
    assert place.job(good)["status"] == "pending"


def test_jobs_are_found_by_a_text_in_their_error_and_replayed(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """What was searched for stands in the field, and in the address."""
    for error in ("ValueError: no price", "KeyError: a"):
        steps.fail(place.db, steps.held(place.db), error)
    page = open_page(f"{serve()}/jobs?status=failed")
    field = page.get_by_placeholder("Job id, #tag or error")
    field.fill("NO PRICE")
    page.keyboard.press("Enter")
    table = page.get_by_role("table", name="Jobs")
    expect(table.locator("tbody tr")).to_have_count(1)
    page.reload()
    expect(field).to_have_value("NO PRICE")
    expect(table.locator("tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Replay all…").click()
    page.get_by_role("dialog").get_by_role("button", name="Replay them").click()
    expect(page.get_by_text("1 job replayed.")).to_be_visible()
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE status = 'failed'") == 1


def test_a_job_is_replayed_with_another_body(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """What is not JSON is said at once, and the text stays."""
    job = submit(None, "single", {"do": "permanent"})
    place.worker()
    place.finished(job)
    page = open_page(f"{serve()}/jobs/{job}")
    page.get_by_role("button", name="Edit and replay…").click()
    text = page.get_by_role("dialog").get_by_label("Body")
    text.fill("{oops")
    page.get_by_role("dialog").get_by_role("button", name="Replay the job").click()
    expect(page.get_by_role("dialog")).to_contain_text("This is not JSON")
    text.fill('{"do": "ledger"}')
    page.get_by_role("dialog").get_by_role("button", name="Replay the job").click()
    expect(page.locator("main h1 .pill")).to_have_text("succeeded")
    assert place.job(job)["body"] == {"do": "ledger"}


def test_it_says_that_no_worker_is_alive_and_that_a_stream_is_silent(
    place: Place, serve: Serve, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The banner goes when one comes; a stream that is open and says nothing is not live."""
    page = open_page(serve())
    expect(page.get_by_role("alert").filter(has_text="No worker is alive")).to_be_visible()
    expect(page.get_by_role("table", name="Phases")).to_contain_text("3 free, no worker")
    place.worker()
    expect(page.get_by_text("No worker is alive")).to_have_count(0)
    expect(page.locator(".stream")).to_have_text("live")
    monkeypatch.setattr(events, "EVERY", 9.0)
    expect(page.locator(".stream")).to_contain_text("silent for")
    monkeypatch.setattr(events, "EVERY", 0.2)
    expect(page.locator(".stream")).to_have_text("live")
