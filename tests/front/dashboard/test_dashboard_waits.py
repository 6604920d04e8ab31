"""Jobs that wait for people and for other jobs, in a real browser."""

from __future__ import annotations

import re
from datetime import timedelta

import httpx
from playwright.sync_api import expect
from pydantic import SecretStr

from pipeline import settings
from pipeline.event_links import event_link
from tests.front.api.conftest import OPERATOR, TOKENS, Serve
from tests.front.dashboard.conftest import OpenPage
from tests.front.waiting import end, parent, waiting
from tests.place import Place


def test_a_job_that_waits_for_an_event_is_told_of_it(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """Its page says which and until when; afterwards the event is listed as taken."""
    job = waiting(place, after=3600)
    page = open_page(f"{serve()}/jobs/{job}")
    expect(page.locator(".facts")).to_contain_text(re.compile(r"Waits for\s*event approved until"))
    expect(page.locator(".timeline .stretch.waiting-for-an-event")).to_have_count(1)
    page.get_by_role("button", name="Tell the job of an event…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Event")).to_have_value("approved")
    dialog.get_by_label("Body").fill('{"by": ')
    dialog.get_by_role("button", name="Tell the job").click()
    expect(dialog.get_by_role("alert")).to_contain_text("not valid JSON")
    dialog.get_by_label("Body").fill('{"by": "Ada"}')
    dialog.get_by_role("button", name="Tell the job").click()
    expect(page.get_by_role("status").filter(has_text="The job continues.")).to_be_visible()
    row = page.get_by_role("table", name="Events").locator("tbody tr")
    expect(row).to_contain_text(re.compile("approved.*taken.*Ada", re.DOTALL))
    assert place.job(job)["result"] == {"first": {"by": "Ada"}}


def test_parents_and_children_are_found_from_each_other(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """How many are left, those that failed, the list with its filter, and the way back."""
    job, children = parent(place, 60)
    end(place, children[5], children[8], failed=True)
    end(place, children[0])
    page = open_page(f"{serve()}/jobs/{job}")
    expect(page.locator(".facts")).to_contain_text("57 of 60 children")
    expect(page.locator(".timeline .stretch.waiting-for-children")).to_have_count(1)
    table = page.get_by_role("table", name="Children")
    expect(table).to_contain_text("3/60")
    expect(table.locator(f"a[href='/jobs/{children[5]}']")).to_be_visible()
    table.get_by_role("link", name="60 children").click()
    rows = page.get_by_role("table", name="Children").locator("tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text("succeeded")
    page.get_by_role("link", name="Next page").click()
    expect(rows).to_have_count(10)
    page.get_by_role("link", name="failed", exact=True).click()
    expect(rows).to_have_count(2)
    rows.first.get_by_role("link").click()
    expect(page.locator(".facts")).to_contain_text(re.compile(r"Child of\s*triple"))
    page.locator(f".facts a[href='/jobs/{job}']").click()
    expect(page.locator("main h1")).to_contain_text(str(job))


def test_a_person_with_a_link_confirms_with_one_button(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """Without a token, without a script; the second time the page says that it was done."""
    secret = SecretStr("s" * 40)
    address = serve(api_tokens=SecretStr(TOKENS), event_secret=secret)
    job = waiting(place)
    config = settings.load(event_secret=secret, api_url=address)
    link = event_link(job, "approved", expires=timedelta(days=7), body={"by": "Ada"}, config=config)
    page = open_page(link)
    expect(page.get_by_role("heading", name="Confirm “approved”?")).to_be_visible()
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_role("heading", name="Thank you.")).to_be_visible()
    assert place.job(job)["result"] == {"first": {"by": "Ada"}}
    page.goto(link)
    expect(page.get_by_text("already")).to_be_visible()
    with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {OPERATOR}"}) as client:
        assert client.get(f"/v1/jobs/{job}").json()["events"][0]["name"] == "approved"
