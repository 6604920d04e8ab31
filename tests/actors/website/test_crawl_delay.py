"""Crawl-delay of a robots.txt is obeyed for each host, by all workers together."""

from __future__ import annotations

from itertools import pairwise

import httpx
import pytest

from pipeline import cancel, submit, submit_many
from sandbox import Sandbox
from tests.place import Place

# The robots.txt of the sandbox asks this one for a pause of a second.
PATIENT = "patient-bot"
DELAY = 1.0
# A call is late by what the machine needs between permit and request.
LATE = 0.35


@pytest.fixture
def environment(sandbox: Sandbox) -> dict[str, str]:
    return {"PIPELINE_SANDBOX_URL": sandbox.url, "PIPELINE_WEBSITE_USER_AGENT": PATIENT}


def pages_asked_for(sandbox: Sandbox) -> list[tuple[float, str]]:
    arrivals = httpx.get(f"{sandbox.url}/_arrivals").json()
    return [(when, path) for when, path in arrivals if path.startswith(("/sites/", "/frames"))]


def test_two_workers_ask_a_site_once_a_delay(place: Place, sandbox: Sandbox, environment: dict[str, str]) -> None:
    """Five jobs of one host take four delays, cost no attempt, and each page is asked for once."""
    place.worker(threads=4, processes=2, settings=environment)
    jobs = submit_many(None, "website", [{"url": f"{sandbox.url}/sites/{n}/"} for n in range(1, 6)])
    rows = place.finished(*jobs, timeout=60)
    asked = pages_asked_for(sandbox)
    gaps = [later - earlier for (earlier, _), (later, _) in pairwise(asked)]
    print("seconds between two pages:", [f"{gap:.2f}" for gap in gaps])
    assert {row["status"] for row in rows} == {"succeeded"}
    assert len(asked) == 5
    assert all(gap >= DELAY - LATE for gap in gaps) and asked[-1][0] - asked[0][0] >= 4 * DELAY - LATE
    assert {a["outcome"] for job in jobs for a in place.attempts(job)} <= {"succeeded", "snoozed"}


def test_a_visit_of_several_documents_goes_on_where_it_waited(
    place: Place, sandbox: Sandbox, environment: dict[str, str]
) -> None:
    """A frameset and its frames are three documents: none is asked for twice, and nothing is left of the visit."""
    place.worker(threads=4, settings=environment)
    job = submit(None, "website", {"url": f"{sandbox.url}/frames"})
    [row] = place.finished(job, timeout=60)
    asked = pages_asked_for(sandbox)
    assert row["status"] == "succeeded"
    assert [path for _, path in asked] == ["/frames", "/sites/1/", "/sites/2/"]
    assert all(later - earlier >= DELAY - LATE for (earlier, _), (later, _) in pairwise(asked))
    [kept] = place.rows("SELECT page FROM website_analyses WHERE job_id = %s", job)
    assert kept["page"]["title"] == "Two frames" and len(kept["page"]["headings"]) == 6
    assert place.count("SELECT count(*) FROM website_visits") == 0


def test_a_cancel_takes_what_a_visit_has_read(place: Place, sandbox: Sandbox, environment: dict[str, str]) -> None:
    """The documents were kept for this job alone."""
    place.worker(threads=2, settings={**environment, "PIPELINE_WEBSITE_USER_AGENT": "sleepy-bot"})
    job = submit(None, "website", {"url": f"{sandbox.url}/frames"})
    place.until(lambda: place.count("SELECT count(*) FROM website_visits") == 1, 30, "the visit to wait")
    cancel(None, job)
    place.until(lambda: place.count("SELECT count(*) FROM website_visits") == 0, 10, "it to be forgotten")
