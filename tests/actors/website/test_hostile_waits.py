"""Pages that answer "Retry-After: 0", or a moment that has passed, for ever (W3)."""

from __future__ import annotations

from functools import partial
from time import monotonic
from uuid import UUID

import httpx
import pytest

from pipeline import submit, submit_many
from sandbox import Sandbox
from tests.place import Place

PAST = "Fri, 02 Jan 2015 03:04:05 GMT"


@pytest.fixture
def environment(sandbox: Sandbox) -> dict[str, str]:
    return {"PIPELINE_SANDBOX_URL": sandbox.url, "PIPELINE_WEBSITE_RESPECT_ROBOTS": "false"}


def calls(sandbox: Sandbox, site: int) -> int:
    return int(httpx.get(f"{sandbox.url}/_stats").json()["paths"].get(f"/sites/{site}/", 0))


def due_now(place: Place, *jobs: UUID) -> None:
    place.db.execute(
        "UPDATE pipeline.outbox SET due_at = now() WHERE job_id = ANY (%s) AND due_at IS NOT NULL", (list(jobs),)
    )
    place.db.execute("SELECT pg_notify('pipeline_relay', '')")


def test_a_page_that_asks_for_a_wait_of_nothing_is_not_asked_in_a_loop(
    place: Place, sandbox: Sandbox, environment: dict[str, str]
) -> None:
    """730 calls in 20 s, and a good page took 9.9 s beside twelve of them. Now each waits longer than the last time."""
    for site in range(1, 13):
        sandbox.add_fault(match=f"/sites/{site}/", status=429, retry_after="0" if site % 2 else PAST)
    place.worker(threads=8, settings=environment)
    hostile = submit_many(None, "website", [{"url": f"{sandbox.url}/sites/{n}/"} for n in range(1, 13)])
    began = monotonic()
    place.until(lambda: place.count("SELECT min(waits) FROM pipeline.jobs") >= 4, 30, "four waits of each")
    took, made = monotonic() - began, [calls(sandbox, site) for site in range(1, 13)]
    print(f"Retry-After of nothing: {made} calls in {took:.1f} s")
    assert took >= 1 + 1.25 + 1.25**2 and max(made) <= 6
    asked = monotonic()
    good = submit(None, "website", {"url": f"{sandbox.url}/sites/50/"})
    [row] = place.finished(good)
    print(f"a good page beside twelve of them: {monotonic() - asked:.1f} s")
    assert row["status"] == "succeeded" and monotonic() - asked < 5
    assert {
        row["attempts"] for row in place.rows("SELECT attempts FROM pipeline.jobs WHERE id = ANY (%s)", hostile)
    } == {0}


def _waited(place: Place, job: UUID, times: int) -> bool:
    return bool(place.job(job)["waits"] == times)


def test_in_the_end_it_costs_and_the_job_says_why(place: Place, sandbox: Sandbox, environment: dict[str, str]) -> None:
    """A hundred waits in a row without progress are free. Then each is an error, and the budget ends the job."""
    sandbox.add_fault(match="/sites/1/", status=503, retry_after="0")
    job = submit(None, "website", {"url": f"{sandbox.url}/sites/1/"})
    place.db.execute("UPDATE pipeline.jobs SET waits = 99 WHERE id = %s", (job,))
    place.worker(threads=2, settings=environment)
    for waits in (100, 101, 102):
        place.until(partial(_waited, place, job, waits), 20, f"wait {waits}")
        due_now(place, job)
    [row] = place.finished(job)
    print(row["error_message"])
    assert (row["status"], row["attempts"]) == ("failed", 3)
    assert "the other side asked to wait 103 times in a row" in row["error_message"] and "503" in row["error_message"]
    assert [a["outcome"] for a in place.attempts(job)] == ["snoozed", "retried", "retried", "exhausted"]
    place.until(lambda: place.depth("website.website-analysis.XQ") == 1, 20, "its dead letter")
