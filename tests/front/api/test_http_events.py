"""Events over HTTP: telling a job of one, with a token or by a link."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from pipeline.journey.submit import submit
from tests.db import steps
from tests.front.waiting import asks, end, parent, waiting
from tests.place import Place


def tell(api: httpx.Client, job: UUID, event: str = "approved", **given: Any) -> httpx.Response:
    return api.post(f"/v1/jobs/{job}/events/{event}", **given)


@pytest.mark.parametrize("body", [{"by": "Ada"}, [1, 2], "yes", 7, False, None])
def test_a_job_that_waits_is_told_and_continues(place: Place, api: httpx.Client, body: object) -> None:
    """Any JSON; 200 says that it waited."""
    job = waiting(place)
    answer = tell(api, job, json=body)
    assert (answer.status_code, answer.json()) == (200, {"id": str(job), "event": "approved", "answer": "delivered"})
    assert place.job(job)["result"] == {"first": body}


def test_what_comes_before_the_wait_is_kept(place: Place, api: httpx.Client) -> None:
    """202."""
    hold = steps.held(place.db, "triple")
    answer = tell(api, hold.job)
    assert (answer.status_code, answer.json()["answer"]) == (202, "kept")
    steps.complete(place.db, hold, following={"event": "approved"})
    assert place.job(hold.job)["result"] == {"first": None}


def test_jobs_that_ended_or_do_not_exist_are_not_told(place: Place, api: httpx.Client) -> None:
    job = submit(None, "single")
    api.post(f"/v1/jobs/{job}/cancel")
    for answer, status in ((tell(api, job), 409), (tell(api, uuid4()), 404)):
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert place.count("SELECT count(*) FROM pipeline.signals") == 0


@pytest.mark.parametrize(
    ("event", "content", "status"),
    [
        ("e" * 201, b"1", 422),
        ("a%00b", b"1", 422),
        ("approved", b'"' + b"x" * 65_536 + b'"', 413),
        ("approved", b"{", 422),
        ("approved", b"NaN", 422),
        ("approved", b"[" * 150 + b"]" * 150, 422),
    ],
)
def test_what_cannot_be_an_event_is_refused(
    place: Place, api: httpx.Client, event: str, content: bytes, status: int
) -> None:
    """Before anything is stored."""
    job = waiting(place)
    answer = tell(api, job, event, content=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert place.count("SELECT count(*) FROM pipeline.signals") == 0


def test_what_is_not_said_to_be_json_is_refused(place: Place, api: httpx.Client) -> None:
    answer = tell(api, waiting(place), content=b"yes", headers={"Content-Type": "text/csv"})
    assert answer.status_code == 422 and "application/json" in answer.json()["detail"]


def test_a_viewer_tells_nobody(place: Place, guarded: httpx.Client, bearer: dict[str, dict[str, str]]) -> None:
    job = waiting(place)
    assert tell(guarded, job).status_code == 401
    assert tell(guarded, job, headers=bearer["viewer"]).status_code == 403
    assert tell(guarded, job, headers=bearer["operator"]).status_code == 200


def test_a_body_that_does_not_fit_the_waiting_phase_is_refused_by_field(
    place: Place, returns: ModuleType, api: httpx.Client
) -> None:
    """Where this process knows the workflow; the job still waits."""
    job = asks(place)
    answer = tell(api, job, "decided", json={"yes": "perhaps"})
    assert answer.status_code == 422
    assert [one["where"] for one in answer.json()["errors"]] == ["body.yes"]
    assert tell(api, job, "decided", json="yes").json()["errors"][0]["where"] == "body"
    # No type is known for an event that nobody waits for.
    assert tell(api, job, "other", json="yes").status_code == 202
    assert tell(api, job, "decided", json={"yes": True}).status_code == 200


# ---- what is shown


def test_a_job_shows_what_it_waits_for_and_what_it_was_told(place: Place, api: httpx.Client) -> None:
    job = waiting(place, after=3600)
    tell(api, job, "other", json={"n": 1})
    found = api.get(f"/v1/jobs/{job}").json()
    assert (found["waiting"]["reason"], found["waiting"]["event"]) == ("event", "approved")
    assert found["waiting"]["until"] is not None and found["parent"] is None and found["children"] == []
    [event] = found["events"]
    assert (event["name"], json.loads(event["preview"]), event["taken_at"]) == ("other", {"n": 1}, None)
    tell(api, job, json="x" * 5000)
    found = api.get(f"/v1/jobs/{job}").json()
    assert found["waiting"] is None
    assert [event["name"] for event in found["events"]] == ["approved", "other"]
    assert found["events"][0]["taken_at"] is not None and found["events"][0]["preview"].endswith("…")


def test_parents_and_children_lead_to_each_other(place: Place, api: httpx.Client) -> None:
    """How many have ended, and the first that failed; the list has them in order, page by page."""
    job, children = parent(place, 7)
    end(place, children[4], children[2], failed=True)
    end(place, children[0])
    found = api.get(f"/v1/jobs/{job}").json()
    [batch] = found["children"]
    assert found["waiting"] == {"reason": "children", "event": None, "batch": batch["batch"], "until": None}
    assert (batch["total"], batch["ended"], batch["failed"], batch["policy"]) == (7, 3, 2, "best_effort")
    assert batch["first_failed"] == [str(children[2]), str(children[4])] and batch["workflow"] == "single"
    shown = api.get(f"/v1/jobs/{children[1]}").json()["parent"]
    assert shown == {"id": str(job), "workflow": "triple", "phase": "second", "status": "pending"}
    pages, cursor = [], None
    while True:
        page = api.get(f"/v1/jobs/{job}/children", params={"limit": 3, **({"cursor": cursor} if cursor else {})}).json()
        pages.append([item["id"] for item in page["items"]])
        cursor = page["next"]
        if cursor is None:
            break
    assert pages == [[str(one) for one in children[n : n + 3]] for n in (0, 3, 6)]
    failed = api.get(f"/v1/jobs/{job}/children", params={"status": "failed"}).json()["items"]
    assert [item["id"] for item in failed] == [str(children[2]), str(children[4])]
    assert api.get(f"/v1/jobs/{uuid4()}/children").status_code == 404


def test_reasons_are_the_same_words_in_statistics_and_jobs(place: Place, api: httpx.Client) -> None:
    """A phase's waiting jobs by reason, and each job's own."""
    jobs = {"event": waiting(place), "children": parent(place, 1)[0]}
    hold = steps.held(place.db, "triple")
    steps.complete(place.db, hold, following={"after": 3600})
    jobs["after"] = hold.job
    hold = steps.held(place.db, "triple")
    steps.complete(place.db, hold)
    hold = steps.hold(place.db, hold.job)
    steps.one(place.db, "SELECT pipeline.snooze(%s, %s, 'snoozed', 'sleep', 60, NULL)", hold.job, hold.fence)
    jobs["sleep"] = hold.job
    phases = {phase["queue"]: phase["waiting"] for phase in api.get("/v1/stats").json()["phases"]}
    assert phases["triple.second"] == {"event": 1, "children": 1, "after": 1, "sleep": 1}
    for reason, job in jobs.items():
        assert api.get(f"/v1/jobs/{job}/result").json()["wait_reason"] == reason
        assert api.get(f"/v1/jobs/{job}").json()["job"]["wait_reason"] == reason
    metrics = api.get("/metrics").text
    assert all(f'pipeline_waiting{{queue="triple.second",reason="{reason}"}} 1.0' in metrics for reason in jobs)
