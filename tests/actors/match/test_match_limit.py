"""The limit of five calls a second that matching has by default, with large projects, through real workers and HTTP."""

from __future__ import annotations

from time import monotonic
from typing import Any

import httpx
import pytest

from actors.match.decide import ProjectSettings
from actors.match.entries import add_entries
from actors.match.projects import cancel_project, create_project, start_match
from pipeline.store import database
from sandbox import Sandbox
from sandbox.wikidata_labelled import labelled
from tests.place import Place

TWO_CALLS = ("exact", "family name first")
DONE = "SELECT count(*) FROM tasks WHERE status = 'COMPLETED'"


@pytest.fixture
def environment(sandbox: Sandbox) -> dict[str, str]:
    httpx.delete(f"{sandbox.url}/w/_arrivals")
    return {"PIPELINE_SANDBOX_URL": sandbox.url}


def start(count: int) -> int:
    """A new project of so many records that take two calls each, being matched."""
    known = [{"name": record.name, **record.data} for record in labelled() if record.kind in TWO_CALLS]
    with database.engine().begin() as connection:
        project = create_project(connection, "people", ProjectSettings())
        add_entries(connection, project, [{**known[n % len(known)], "external_id": str(n)} for n in range(count)])
        start_match(connection, project)
    return project


def arrivals(sandbox: Sandbox) -> dict[str, Any]:
    return dict(httpx.get(f"{sandbox.url}/w/_arrivals").json())


def test_a_large_project_begins_at_its_limit(place: Place, sandbox: Sandbox, environment: dict[str, str]) -> None:
    """W2: of 3,000 records one was done after 15 s, because each came only to be told its place in the line."""
    place.worker(threads=8, settings=environment)
    start(3000)
    began = monotonic()
    place.until(lambda: monotonic() - began >= 15, 20, "fifteen seconds")
    done, seen = place.count(DONE), arrivals(sandbox)
    sent = place.count("SELECT count(*) FROM pipeline.attempts") + place.count("SELECT count(*) FROM pipeline.permits")
    print(f"3,000 records at 5 calls/s: {done} done in 15 s, {len(seen['arrivals'])} calls, {sent} attempts")
    assert len(seen["arrivals"]) >= 60 and done >= 25
    assert seen["busiest_second"] <= 10, "rate and bucket"
    assert sent <= 4 * done, "the others wait at the gate"


def test_what_was_cancelled_leaves_the_limit_to_the_next(
    place: Place, sandbox: Sandbox, environment: dict[str, str]
) -> None:
    """W2: after 5,000 cancelled records one of another project waited 1,308 s for an empty limit."""
    place.worker(threads=8, settings=environment)
    project = start(5000)
    place.until(lambda: place.count(DONE) >= 5, 30, "the first to be done")
    with database.engine().begin() as connection:
        cancel_project(connection, project)
    place.until(
        lambda: place.count("SELECT count(*) FROM pipeline.jobs WHERE status = 'running'") == 0, 10, "the last attempts"
    )
    before = len(arrivals(sandbox)["arrivals"])
    start(1)
    began = monotonic()
    place.until(lambda: len(arrivals(sandbox)["arrivals"]) > before, 30, "the call")
    waited = monotonic() - began
    print(f"5,000 records cancelled at 5 calls/s: the next record's call came after {waited:.2f} s")
    # A quarter of a second on a machine that has time; a thousand behind the places of those that were cancelled.
    assert waited < 10


def test_a_wikidata_that_asks_for_a_wait_of_nothing_is_bounded_too(
    place: Place, sandbox: Sandbox, environment: dict[str, str]
) -> None:
    """W3: the pause of the rate limit, which every such answer makes, is no progress of the job."""
    sandbox.add_fault(match="/w/api.php", status=429, retry_after="0")
    place.worker(threads=4, settings=environment)
    start(1)
    began = monotonic()
    place.until(lambda: place.count("SELECT waits FROM pipeline.jobs WHERE workflow = 'match'") >= 4, 30, "four waits")
    assert monotonic() - began >= 1 + 1.25 + 1.25**2
    place.db.execute("UPDATE pipeline.jobs SET waits = 100, attempts = max_attempts - 1 WHERE workflow = 'match'")
    place.db.execute("UPDATE pipeline.outbox SET due_at = now() WHERE due_at IS NOT NULL")
    place.db.execute("SELECT pg_notify('pipeline_relay', '')")
    place.until(lambda: place.count("SELECT count(*) FROM tasks WHERE status = 'FAILED'"), 20, "the end")
    [task] = place.rows("SELECT error_message FROM tasks")
    assert "the other side asked to wait 101 times in a row" in task["error_message"]
