"""What the pages of workflows, keys, batches and rate limits read."""

from __future__ import annotations

from uuid import uuid4

import httpx

from pipeline.journey.submit import open_batch, seal_batch, submit, submit_many
from pipeline.scheduling import schedule
from tests.place import Place

TURNS = "INSERT INTO pipeline.turns (workflow, field, per_key) VALUES ('single', 'customer', 2)"
TURN = """UPDATE pipeline.outbox SET turns_id = t.id, key = %s, has_turn = true FROM pipeline.turns t
    WHERE job_id = %s AND t.workflow = 'single'"""


def test_keys_are_listed_paused_weighed_and_resumed(place: Place, api: httpx.Client) -> None:
    """Page by page; a workflow without keys says so."""
    assert api.get("/v1/keys", params={"workflow": "triple"}).status_code == 422
    place.db.execute(TURNS)
    for key in ("acme", "bolt"):
        place.db.execute(TURN, (key, submit(None, "single")))
    first = api.get("/v1/keys", params={"workflow": "single", "limit": 1}).json()
    assert ([one["key"] for one in first["items"]], first["next"]) == (["acme"], "bolt")
    wish = {"workflow": "single", "key": "bolt"}
    assert api.post("/v1/keys/pause", json={**wish, "seconds": 60, "reason": "late"}).json()["changed"] is True
    assert api.post("/v1/keys/weigh", json={**wish, "weight": 5}).status_code == 200
    [bolt] = api.get("/v1/keys", params={"workflow": "single", "from": first["next"]}).json()["items"]
    assert (bolt["weight"], bolt["paused"], bolt["under_way"]) == (5, True, 1)
    assert api.post("/v1/keys/resume", json=wish).json()["changed"] is True
    assert api.post("/v1/keys/resume", json=wish).json()["changed"] is False
    assert place.count("SELECT count(*) FROM pipeline.audit WHERE subject = 'single bolt'") == 4


def test_a_batch_leads_to_its_jobs_and_a_rate_limit_says_who_waits(place: Place, api: httpx.Client) -> None:
    batch = open_batch(None)
    jobs = submit_many(None, "single", [{}, {}], batch=batch)
    seal_batch(None, batch)
    assert api.get(f"/v1/batches/{batch}").json()["total"] == 2
    page = api.get(f"/v1/batches/{batch}/jobs", params={"limit": 1}).json()
    assert [one["id"] for one in page["items"]] == [str(jobs[0])]
    page = api.get(f"/v1/batches/{batch}/jobs", params={"cursor": page["next"]}).json()
    assert ([one["id"] for one in page["items"]], page["next"]) == ([str(jobs[1])], None)
    for path in (f"/v1/batches/{uuid4()}", f"/v1/batches/{uuid4()}/jobs"):
        assert api.get(path).status_code == 404
    place.rows("SELECT pipeline.set_rate_limit('bazaar', 5, 10)")
    place.rows("SELECT pipeline.pause_rate_limit('bazaar', 'infinity', 'breaker')")
    submit(None, "single", rate_limit="bazaar")
    [found] = [one for one in api.get("/v1/limits").json() if one["name"] == "bazaar"]
    assert (found["rate"], found["paused"], found["paused_until"], found["waiting"]) == (5, True, None, 1)


def test_a_workflow_says_its_hooks_and_turns_and_a_schedule_its_next_moments(place: Place, api: httpx.Client) -> None:
    """An unknown one is not found; one that nothing happened in has an empty history."""
    place.db.execute(
        "INSERT INTO pipeline.hooks (workflow, no, event, submits) VALUES ('triple', 1, 'failed', 'single')"
    )
    place.db.execute(TURNS)
    hook = {"workflow": "triple", "event": "failed", "submits": "single"}
    for name, turns in (("triple", None), ("single", "customer")):
        found = api.get(f"/v1/workflows/{name}").json()
        assert found["hooks"] == [hook]
        assert (found["turns"] and found["turns"]["field"]) == turns
    history = api.get("/v1/workflows/single/history").json()
    assert (history["step_seconds"], history["points"], history["whole"]["p50"]) == (900, [], None)
    assert api.get("/v1/workflows/nothing/history").status_code == 404
    schedule(None, "single", "hourly", "0 * * * *")
    place.db.execute(
        "UPDATE pipeline.schedules SET planned = true, next_at = date_trunc('hour', now()) + interval '1 hour'"
    )
    moments = api.get("/v1/schedules/single/hourly").json()["moments"]
    assert len(moments) == 8
    assert moments == sorted(moments)
