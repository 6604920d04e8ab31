"""What is done with all jobs that match: the same over HTTP and on the command line."""

from __future__ import annotations

import json
from uuid import UUID

import httpx
import pytest

from pipeline.front import many
from pipeline.journey.submit import submit, submit_many
from tests.commands import pipeline_here
from tests.db import steps
from tests.front.api.conftest import api as api
from tests.front.api.conftest import serve as serve
from tests.place import Place


def states(place: Place, jobs: list[UUID]) -> dict[str, int]:
    rows = place.rows("SELECT status, count(*) AS n FROM pipeline.jobs WHERE id = ANY (%s) GROUP BY 1", jobs)
    return {row["status"]: row["n"] for row in rows}


def fail(place: Place, error: str) -> UUID:
    hold = steps.held(place.db)
    steps.fail(place.db, hold, error)
    return hold.job


def test_all_that_match_are_cancelled_part_by_part(
    place: Place, api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted before; the others are left alone; a second time there is nothing to do."""
    monkeypatch.setattr(many.part, "__defaults__", (3,))
    wrong = submit_many(None, "single", [{}] * 8, tags=["wrong"])
    good = submit_many(None, "single", [{}] * 2)
    assert api.get("/v1/jobs/count", params={"tag": "wrong", "status": "unfinished"}).json() == {
        "jobs": 8,
        "next": None,
    }
    wish: dict[str, object] = {"where": {"tag": "wrong"}, "reason": "a mistake"}
    parts = []
    while True:
        answer = api.post("/v1/jobs/cancel", json=wish).json()
        parts.append(answer["jobs"])
        if answer["next"] is None:
            break
        wish["cursor"] = answer["next"]
    assert parts == [3, 3, 2]
    assert states(place, wrong) == {"cancelled": 8} and states(place, good) == {"pending": 2}
    assert place.job(wrong[0])["error_message"] == "a mistake"
    assert api.post("/v1/jobs/cancel", json={"where": {"tag": "wrong"}}).json() == {"jobs": 0, "next": None}


def test_what_cannot_be_done_is_refused(api: httpx.Client) -> None:
    """Jobs that have ended are not cancelled, those that succeeded are not replayed; a filter is needed."""
    assert api.post("/v1/jobs/cancel", json={"where": {"status": "succeeded"}}).status_code == 422
    assert api.post("/v1/jobs/replay", json={"where": {"status": "succeeded"}}).status_code == 422
    assert api.post("/v1/jobs/replay", json={}).status_code == 422
    for wrong in ({"id": "xyz"}, {"error": ""}, {"since": "yesterday"}, {"colour": "red"}):
        assert api.post("/v1/jobs/replay", json={"where": wrong}).status_code == 422, wrong


def test_jobs_are_listed_by_the_same_filter(place: Place, api: httpx.Client) -> None:
    """The beginning of an id, a text in the error, a time."""
    one, two = fail(place, "KeyError: a"), fail(place, "ValueError: no price")
    listed = api.get("/v1/jobs", params={"error": "NO PRICE"}).json()
    assert [item["id"] for item in listed["items"]] == [str(two)] and listed["next"] is None
    assert [item["id"] for item in api.get("/v1/jobs", params={"id": str(one)}).json()["items"]] == [str(one)]
    assert api.get("/v1/jobs", params={"until": "2020-01-01T00:00:00Z"}).json()["items"] == []
    found = json.loads(pipeline_here(place, "jobs", "--error", "no price", "--since", "1h", "--json").stdout)
    assert [row["id"] for row in found] == [str(two)]


def test_the_command_line_counts_and_asks_before_it_does(place: Place) -> None:
    """Where nobody can be asked, --yes is needed."""
    jobs = [fail(place, "ValueError: no price"), fail(place, "KeyError: a"), fail(place, "ValueError: no price")]
    where = "status=failed error='no price'"
    answer = pipeline_here(place, "replay", "--where", where)
    assert answer.returncode == 1 and "2 jobs match: status failed, error no price" in answer.stdout
    assert "add --yes" in answer.stderr and states(place, jobs) == {"failed": 3}
    assert "sent again 2 jobs" in pipeline_here(place, "replay", "--where", where, "--yes").stdout
    assert states(place, jobs) == {"pending": 2, "failed": 1}
    said = pipeline_here(place, "cancel", "--where", "workflow=single", "--yes", "--reason", "a mistake").stdout
    assert "cancelled 2 jobs" in said and states(place, jobs) == {"cancelled": 2, "failed": 1}
    assert "sent again 2 jobs" in pipeline_here(place, "replay", "--where", "status=cancelled", "--yes").stdout


@pytest.mark.parametrize("where", ["", "colour=red", "status", "status=lost", "error='no", "id=12"])
def test_a_filter_that_cannot_be_meant_is_refused(place: Place, where: str) -> None:
    """Nothing is done, and the message shows how it is written."""
    job = submit(None, "single")
    answer = pipeline_here(place, "cancel", "--where", where, "--yes")
    assert answer.returncode == 1 and answer.stderr.startswith("pipeline: ")
    assert place.job(job)["status"] == "pending"


def test_a_cancelled_job_can_be_replayed_and_with_another_body(place: Place, api: httpx.Client) -> None:
    """With fresh budgets; a job that succeeded cannot."""
    job = submit(None, "single", {"do": "permanent"})
    api.post(f"/v1/jobs/{job}/cancel")
    place.worker()
    assert api.post(f"/v1/jobs/{job}/replay").status_code == 202
    assert place.finished(job)[0]["status"] == "failed"
    assert api.post(f"/v1/jobs/{job}/replay", json={"body": {"x": "y" * 70_000}}).status_code == 422
    assert api.post(f"/v1/jobs/{job}/replay", json={"body": {"do": "ledger"}}).status_code == 202
    row = place.finished(job)[0]
    assert (row["status"], row["body"]) == ("succeeded", {"do": "ledger"})
    assert "only a failed or cancelled job" in api.post(f"/v1/jobs/{job}/replay").json()["detail"]
