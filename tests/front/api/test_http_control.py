"""What operators change while jobs run, over HTTP; and the record of who did what."""

from __future__ import annotations

import inspect
import re
from uuid import UUID

import httpx
import pytest
from fastapi.routing import APIRoute
from pydantic import SecretStr

from pipeline.front.api.app import PARTS
from pipeline.front.api.http.auth import operate
from pipeline.journey.submit import submit, submit_many
from tests.db import steps
from tests.front.api.conftest import Serve
from tests.place import Place

ADA = "a" * 24
GATES = "SELECT queue, paused_until = 'infinity' AS shut FROM pipeline.phases WHERE paused_until > now() ORDER BY queue"


@pytest.fixture
def ada(serve: Serve) -> httpx.Client:
    """Somebody with a token that has a name."""
    return httpx.Client(
        base_url=serve(api_tokens=SecretStr(f"ada=operator:{ADA}")),
        headers={"Authorization": f"Bearer {ADA}"},
        timeout=20,
    )


def entries(client: httpx.Client, **query: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = client.get("/v1/audit", params=query).json()["items"]
    return found


def test_a_phase_a_workflow_and_everything_are_paused_and_resumed(place: Place, api: httpx.Client) -> None:
    """For a time or until resumed; what does not exist is 404."""
    assert api.post("/v1/phases/pause", json={"workflow": "single", "phase": "act", "seconds": 60}).json()[0][
        "paused_until"
    ]
    assert api.post("/v1/phases/pause", json={"workflow": "triple"}).status_code == 200
    assert [(row["queue"], row["shut"]) for row in place.rows(GATES)] == [
        ("single.act", False),
        ("triple.first", True),
        ("triple.second", True),
        ("triple.third", True),
    ]
    assert len(api.post("/v1/phases/pause", json={}).json()) == place.count("SELECT count(*) FROM pipeline.phases")
    assert {one["was_paused"] for one in api.post("/v1/phases/resume", json={}).json()} == {True}
    assert place.rows(GATES) == []
    assert api.post("/v1/phases/pause", json={"workflow": "single", "phase": "gone"}).status_code == 404
    assert api.post("/v1/phases/pause", json={"phase": "act"}).status_code == 422


def test_pool_and_rate_are_set_and_set_back(place: Place, api: httpx.Client) -> None:
    """Statistics and the list of workflows say what is in force, and what the code declares."""
    which = {"workflow": "pooled", "phase": "narrow"}
    assert api.post("/v1/phases/set", json={**which, "pool": 7, "rate": "20/s"}).json() == {
        "queue": "pooled.narrow",
        "changed": ["pool", "rate"],
    }
    [now] = [one for one in api.get("/v1/stats").json()["phases"] if one["queue"] == "pooled.narrow"]
    assert (now["pool"], now["declared_pool"], now["pool_is_set"]) == (7, 3, True)
    assert (now["throttle_count"], now["throttle_seconds"], now["rate_is_set"]) == (1, 0.05, True)
    [phase] = api.get("/v1/workflows/pooled").json()["phases"]
    assert (phase["pool"], phase["declared_pool"], phase["pool_is_set"]) == (7, 3, True)
    assert api.post("/v1/phases/set", json={**which, "declared": ["pool", "rate"]}).status_code == 200
    [phase] = api.get("/v1/workflows/pooled").json()["phases"]
    assert (phase["pool"], phase["pool_is_set"], phase["throttle_count"]) == (3, False, None)
    for wrong in ({}, {"pool": 0}, {"rate": "often"}, {"pool": 10**6}):
        assert api.post("/v1/phases/set", json={**which, **wrong}).status_code == 422, wrong
    assert api.post("/v1/phases/set", json={**which, "phase": "gone", "pool": 1}).status_code == 404


def test_a_worker_is_shown_with_what_it_runs_and_drained(place: Place, api: httpx.Client) -> None:
    """One that has gone cannot be drained: 409; one that never existed: 404."""
    steps.sign_on(place.db, "w1")
    hold = steps.held(place.db)
    found = api.get("/v1/workers/w1").json()
    assert [job["id"] for job in found["jobs"]] == [str(hold.job)]
    assert api.post("/v1/workers/w1/drain", json={"reason": "a new kernel"}).json()["state"] == "draining"
    assert api.post("/v1/workers/w1/resume").json()["state"] == "alive"
    number = steps.sign_on(place.db, "w2")
    steps.die(place.db, number)
    assert api.post("/v1/workers/w2/drain").status_code == 409
    assert api.post("/v1/workers/nobody/drain").status_code == 404


def test_it_is_written_down_who_did_what_to_which_jobs(place: Place, ada: httpx.Client) -> None:
    """With the name of the token, the reason, and the address. What was refused is not."""
    one, two = submit_many(None, "single", [{}, {}], tags=["wrong"])
    third = submit(None, "single")
    ada.post("/v1/jobs/cancel", json={"where": {"tag": "wrong"}, "reason": "a mistake"})
    ada.post(f"/v1/jobs/{third}/cancel", json={"reason": "twice"})
    assert ada.post(f"/v1/jobs/{third}/cancel").status_code == 409
    ada.post(f"/v1/jobs/{third}/replay", json={"reason": "not twice"})
    ada.post("/v1/phases/pause", json={"workflow": "single", "reason": "a deploy"})
    ada.post("/v1/phases/set", json={"workflow": "single", "phase": "act", "pool": 3})
    found = entries(ada)
    assert [(entry["action"], entry["subject"], entry["reason"], entry["jobs"]) for entry in found] == [
        ("set", "single.act", None, None),
        ("pause", "single", "a deploy", None),
        ("replay", None, "not twice", 1),
        ("cancel", None, "twice", 1),
        ("cancel", None, "a mistake", 2),
    ]
    assert {(entry["who"], entry["door"], entry["origin"]) for entry in found} == {("ada", "api", "127.0.0.1")}
    assert found[0]["detail"] == {"pool": 3}
    assert found[-1]["detail"] == {"where": {"tag": "wrong", "status": "unfinished"}}
    assert {UUID(str(job)) for job in found[-1]["job_ids"]} == {one, two}  # type: ignore[attr-defined]
    assert [entry["action"] for entry in entries(ada, job=str(third))] == ["replay", "cancel"]
    assert [entry["action"] for entry in entries(ada, action="pause", by="ada")] == ["pause"]
    first = ada.get("/v1/audit", params={"limit": 3}).json()
    rest = ada.get("/v1/audit", params={"limit": 3, "cursor": first["next"]}).json()
    assert [len(page["items"]) for page in (first, rest)] == [3, 2] and rest["next"] is None


def test_dead_letters_and_schedules_are_written_down_as_well(place: Place, ada: httpx.Client) -> None:
    """A discard with its reason, a replay with its rate."""
    failed = [steps.held(place.db) for _ in range(2)]
    for hold in failed:
        steps.fail(place.db, hold, "ValueError: no (shop.py:3)")
    [group] = ada.get("/v1/dead").json()["items"]
    ada.post("/v1/dead/replay", json={"group": group["group"], "limit": 1, "per_second": 5, "reason": "one"})
    ada.post("/v1/dead/discard", json={"group": group["group"], "reason": "given up"})
    ada.put("/v1/schedules/single/often", json={"every": 60})
    ada.post("/v1/schedules/single/often/pause")
    ada.delete("/v1/schedules/single/often")
    found = {str(entry["action"]): entry for entry in entries(ada)}
    assert list(found) == ["unschedule", "pause schedule", "schedule", "discard", "replay"]
    assert found["replay"]["detail"] == {"cause": group["cause"], "per_second": 5.0}
    assert (found["discard"]["reason"], found["discard"]["jobs"]) == ("given up", 1)
    assert found["pause schedule"]["subject"] == "single.often"


def test_the_dashboard_is_told_from_other_programs(api: httpx.Client) -> None:
    """By the header that its requests carry. Without tokens nobody has a name."""
    job = submit(None, "single")
    api.post(f"/v1/jobs/{job}/cancel", headers={"X-Pipeline": "1"})
    [entry] = entries(api)
    assert (entry["who"], entry["door"]) == ("anybody on this machine", "dashboard")


def test_every_endpoint_that_changes_something_writes_it_down() -> None:
    """Except submitting, which leaves the job itself behind."""
    changing = [
        route.endpoint
        for part in PARTS
        for route in part.router.routes
        if isinstance(route, APIRoute) and operate in {asked.call for asked in route.dependant.dependencies}
    ]
    silent = [one.__name__ for one in changing if not re.search(r"who\.actor|\(who, ", inspect.getsource(one))]
    assert len(changing) > 15 and silent == ["submit"]


def test_a_group_is_replayed_at_a_rate_that_everybody_sees_pauses_and_stops(place: Place, ada: httpx.Client) -> None:
    """Its number, how far it is, and how it ended; a canary beside it."""
    holds = [steps.held(place.db) for _ in range(3)]
    for hold in holds:
        steps.fail(place.db, hold, "ValueError: no (shop.py:3)")
    [group] = ada.get("/v1/dead").json()["items"]
    canary = {"action": "canary", "group": group["group"], "job": str(holds[0].job)}
    assert ada.post("/v1/bulk", json=canary).status_code == 202
    assert ada.post("/v1/bulk", json=canary).status_code == 409
    begun = ada.post("/v1/bulk", json={"action": "replay", "group": group["group"], "per_second": 0.5}).json()
    assert begun["total"] == 2
    assert ada.post(f"/v1/bulk/{begun['id']}/pause").json() == {"id": begun["id"], "state": "paused"}
    [replay, ahead] = ada.get("/v1/bulk").json()
    assert (replay["state"], replay["per_second"], replay["who"]) == ("paused", 0.5, "ada")
    assert (ahead["job"], ahead["job_status"]) == (str(holds[0].job), "pending")
    assert ada.post(f"/v1/bulk/{begun['id']}/stop").status_code == 200
    assert ada.post(f"/v1/bulk/{begun['id']}/resume").status_code == 409
    assert ada.post("/v1/bulk/999/stop").status_code == 404
    for wrong in (
        {"action": "cancel", "group": group["group"]},
        {"action": "discard", "where": {}},
        {"action": "replay"},
    ):
        assert ada.post("/v1/bulk", json=wrong).status_code == 422, wrong


def test_all_that_match_are_cancelled_in_the_background(place: Place, ada: httpx.Client) -> None:
    """By a worker's maintenance; the filter is in the audit."""
    jobs = submit_many(None, "single", [{}] * 50, tags=["wrong"])
    place.db.execute("SELECT pipeline.pause_phases('single', NULL, 'infinity')")
    place.worker(threads=1)
    ada.post("/v1/bulk", json={"action": "cancel", "where": {"tag": "wrong"}, "reason": "a mistake"})
    assert {row["error_message"] for row in place.finished(*jobs)} == {"a mistake"}
    place.until(lambda: ada.get("/v1/bulk").json()[0]["state"] == "done", 10, "its end")
    [entry] = entries(ada, job=str(jobs[0]))
    assert (entry["jobs"], entry["reason"], entry["who"]) == (50, "a mistake", "ada")
