"""Jobs over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from pipeline.journey.submit import submit, submit_many
from tests.place import Place

TRACE = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


def post(api: httpx.Client, body: object, **headers: str) -> httpx.Response:
    return api.post("/v1/jobs", json=body, headers=headers)


def test_a_job_is_accepted_and_can_be_followed_to_its_end(place: Place, api: httpx.Client) -> None:
    """202 with its address; afterwards its row, its timeline, its attempts and the caller's trace."""
    answer = post(api, {"workflow": "triple", "body": {"n": 1}, "priority": 3}, traceparent=TRACE)
    assert answer.status_code == 202
    place.worker()
    place.finished(UUID(answer.json()["id"]))
    found = api.get(answer.headers["location"]).json()
    assert (found["job"]["status"], found["job"]["trace_id"], found["body"]) == ("succeeded", "a" * 32, {"n": 1})
    assert [part["phase"] for part in found["attempts"]] == ["third", "second", "first"]
    assert {part["part"] for part in found["timeline"]} >= {"queued", "running"}
    stats = {phase["queue"]: phase for phase in api.get("/v1/stats").json()["phases"]}
    assert stats["triple.first"]["ended_per_second"] > 0 == stats["triple.first"]["error_rate"]
    assert [worker["state"] for worker in api.get("/v1/workers").json()] == ["alive"]


def test_the_steps_of_a_job_are_shown_with_it(place: Place, api: httpx.Client) -> None:
    """The newest first, and long results cut."""
    job = submit(None, "single")
    place.db.execute(
        "INSERT INTO pipeline.steps (job_id, fence, at, phase, name, value)"
        " VALUES (%(job)s, 1, now() - interval '1 s', 'act', 'fetch', %(page)s), (%(job)s, 1, now(), 'act', 'count', '7')",
        {"job": job, "page": '"' + "x" * 5000 + '"'},
    )
    count, fetch = api.get(f"/v1/jobs/{job}").json()["steps"]
    assert (count["phase"], count["name"], count["size"], count["preview"]) == ("act", "count", 1, "7")
    assert (fetch["name"], fetch["size"], fetch["preview"]) == ("fetch", 5002, '"' + "x" * 999 + "…")
    assert count["at"] > fetch["at"]


def test_the_broker_being_away_does_not_matter(place: Place, api: httpx.Client) -> None:
    """The job waits in PostgreSQL; only readiness tells."""
    place.servers.rabbitmq.delete_vhost(place.vhost)
    try:
        assert post(api, {"workflow": "single"}).status_code == 202
        ready = api.get("/readyz")
        assert (ready.status_code, ready.json()["checks"]["broker"]) == (503, "RabbitMQ does not answer")
        assert ready.json()["checks"]["database"] == "ok"
    finally:
        place.servers.rabbitmq.create_vhost(place.vhost)


def test_one_idempotency_key_is_one_job_however_many_send_it_at_once(place: Place, api: httpx.Client) -> None:
    """Twenty requests race; all get the same job."""
    wish = {"workflow": "single", "body": {"url": "https://example.org"}}
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: post(api, wish, **{"Idempotency-Key": "one"}), range(20)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert place.count("SELECT count(*) FROM pipeline.jobs") == 1


def test_a_key_with_another_body_is_refused_and_changes_nothing(place: Place, api: httpx.Client) -> None:
    """The first job stays as it was."""
    key = {"Idempotency-Key": "one"}
    job = post(api, {"workflow": "single", "body": {"n": 1}}, **key).json()["id"]
    for other in ({"body": {"n": 2}}, {"body": {"n": 1}, "priority": 1}):
        answer = post(api, {"workflow": "single", **other}, **key)
        assert (answer.status_code, answer.headers["content-type"]) == (409, "application/problem+json")
        assert job in answer.json()["detail"]
    assert place.job(UUID(job))["body"] == {"n": 1} and place.count("SELECT count(*) FROM pipeline.jobs") == 1


def test_a_request_says_how_long_its_key_is_kept(place: Place, api: httpx.Client) -> None:
    """Another body is not refused then: the answer is the job that has the key."""
    key = {"Idempotency-Key": "k"}
    first = post(api, {"workflow": "single", "body": {"n": 1}, "unique": "open"}, **key)
    again = post(api, {"workflow": "single", "body": {"n": 2}, "unique": "open"}, **key)
    assert first.status_code == again.status_code == 202 and first.json() == again.json()
    replaced = post(api, {"workflow": "single", "body": {"n": 3}, "unique": "replace"}, **key)
    assert replaced.json() == first.json()
    assert place.job(UUID(first.json()["id"]))["body"] == {"n": 3}
    by_body = [post(api, {"workflow": "single", "body": {"n": 1}, "unique": 3600.0}).json() for _ in range(2)]
    assert by_body[0] == by_body[1] != first.json()


def test_jobs_have_tags_and_are_found_by_one(api: httpx.Client) -> None:
    """In lists, pages and the job itself."""
    jobs = [post(api, {"workflow": "single", "tags": ["vip", "eu"]}).json()["id"] for _ in range(3)]
    plain = post(api, {"workflow": "single"}).json()["id"]
    page = api.get("/v1/jobs", params={"tag": "vip", "limit": 2}).json()
    rest = api.get("/v1/jobs", params={"tag": "vip", "cursor": page["next"]}).json()
    assert [item["id"] for item in page["items"] + rest["items"]] == jobs[::-1]
    assert api.get(f"/v1/jobs/{jobs[0]}").json()["job"]["tags"] == ["vip", "eu"]
    assert api.get(f"/v1/jobs/{plain}").json()["job"]["tags"] == []


def test_a_job_expires_after_a_time_or_at_one(place: Place, api: httpx.Client) -> None:
    """Seconds, or a moment."""
    late = post(api, {"workflow": "single", "delay": 90.0}).json()["id"]
    assert place.job(UUID(late))["next_retry_at"] > datetime.now(UTC) + timedelta(seconds=60)
    for expires in (90.0, "2100-01-31T12:00:00Z"):
        job = post(api, {"workflow": "single", "expires": expires}).json()["id"]
        assert api.get(f"/v1/jobs/{job}").json()["job"]["expires_at"] == place.job(UUID(job))[
            "expires_at"
        ].isoformat().replace("+00:00", "Z")


@pytest.mark.parametrize(
    "wish",
    [
        {"unique": "closed"},
        {"unique": 0},
        {"unique": "open", "debounce": 5.0},
        {"unique": "replace"},
        {"debounce": -1},
        {"delay": -1},
        {"delay": 5.0, "debounce": 5.0},
        {"expires": "soon"},
        {"expires": -5},
        {"tags": ["x" * 65]},
        {"tags": ["x"] * 21},
        {"tags": "vip"},
    ],
)
def test_options_that_mean_nothing_are_refused(place: Place, api: httpx.Client, wish: dict[str, Any]) -> None:
    """422 or 400, with what would be right."""
    answer = post(api, {"workflow": "single", **wish})
    assert answer.status_code in (400, 422) and answer.headers["content-type"] == "application/problem+json"
    assert place.count("SELECT count(*) FROM pipeline.jobs") == 0


def test_a_replay_that_is_refused_for_its_key_says_so(place: Place, api: httpx.Client) -> None:
    """409: another job has it."""
    job = post(api, {"workflow": "single", "unique": "open"}).json()["id"]
    place.rows("SELECT pipeline.undeliverable(%s, 1, 'x')", job)
    post(api, {"workflow": "single", "unique": "open"})
    answer = api.post(f"/v1/jobs/{job}/replay")
    assert answer.status_code == 409 and "another job that has not ended has its key" in answer.json()["detail"]


def test_pages_hold_every_job_once_newest_first_also_while_new_ones_come(place: Place, api: httpx.Client) -> None:
    """By cursor; filters keep theirs."""
    jobs = submit_many(None, "single", [{}] * 7) + submit_many(None, "triple", [{}] * 5)
    seen, cursor = [], None
    while True:
        page = api.get("/v1/jobs", params={"limit": 5, **({"cursor": cursor} if cursor else {})}).json()
        seen += [UUID(item["id"]) for item in page["items"]]
        cursor = page["next"]
        submit(None, "single")
        if cursor is None:
            break
    assert seen == sorted(jobs, reverse=True)


def test_filters_give_what_they_say(place: Place, api: httpx.Client) -> None:
    """Workflow, phase and status, alone and together, newest first."""
    single, triple = submit_many(None, "single", [{}] * 3), submit_many(None, "triple", [{}] * 2)
    api.post(f"/v1/jobs/{single[0]}/cancel")

    def ids(**filters: str) -> list[UUID]:
        return [UUID(item["id"]) for item in api.get("/v1/jobs", params=filters).json()["items"]]

    assert ids(workflow="single") == sorted(single, reverse=True)
    assert ids(status="pending") == sorted([*single[1:], *triple], reverse=True)
    assert ids(workflow="single", status="cancelled") == [single[0]]
    assert ids(phase="first") == sorted(triple, reverse=True)
    assert ids(phase="second") == ids(workflow="unknown") == []


def test_cancel_and_retry_say_why_not(place: Place, api: httpx.Client) -> None:
    """404 for an unknown job, 409 in another state, with the state."""
    job = submit(None, "single")
    assert api.post(f"/v1/jobs/{job}/replay").status_code == 409
    assert api.post(f"/v1/jobs/{job}/cancel", json={"reason": "not needed"}).json()["status"] == "cancelled"
    assert place.job(job)["error_message"] == "not needed"
    again = api.post(f"/v1/jobs/{job}/cancel")
    assert again.status_code == 409 and "cancelled" in again.json()["detail"]
    for action in ("cancel", "replay"):
        assert api.post(f"/v1/jobs/{uuid4()}/{action}").status_code == 404
    assert api.get(f"/v1/jobs/{uuid4()}").status_code == 404


def test_what_others_wrote_is_cut_and_stays_json(place: Place, api: httpx.Client) -> None:
    """Script in a body is data, never a page; a text of 60,000 characters is shown in part."""
    job = submit(None, "single", {"html": "<script>alert(1)</script>", "long": "x" * 60_000})
    answer = api.get(f"/v1/jobs/{job}")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.json()["body"]["html"] == "<script>alert(1)</script>"
    assert answer.json()["body"]["long"].endswith("(60000 characters)") and len(answer.text) < 10_000


def test_a_long_walk_through_waiting_jobs_continues_in_the_next_page(place: Place, api: httpx.Client) -> None:
    """A page may be short; following the cursors finds every job that matches, once."""
    wanted = submit_many(None, "single", [{}] * 3)
    submit_many(None, "triple", [{}] * 25)
    wanted += submit_many(None, "single", [{}] * 2)
    found: list[UUID] = []
    before, pages = "ffffffff-ffff-ffff-ffff-ffffffffffff", 0
    while before is not None:
        row = place.row("SELECT * FROM pipeline.list_jobs('single', NULL, NULL, %s, 10, 4)", before)
        assert row is not None
        found, before, pages = found + row["ids"], row["floor"], pages + 1
    assert found == sorted(wanted, reverse=True) and pages > 6


def test_a_failed_job_says_why(place: Place, api: httpx.Client) -> None:
    """The newest attempt that kept something comes with the job; each of them by itself."""
    place.worker()
    job = submit(None, "single", {"do": "speak", "until": 99})
    place.finished(job)
    found = api.get(f"/v1/jobs/{job}").json()
    assert [one["log"] for one in found["attempts"]] == [True, True, True]
    assert found["why"]["fence"] == 3 and found["why"]["traceback"].endswith("ValueError: no price, try 3")
    assert "structured words colour=red" in found["why"]["lines"]
    first = api.get(f"/v1/jobs/{job}/attempts/1").json()
    assert (first["outcome"], first["attempt"]) == ("retried", 1) and first["traceback"].endswith("try 1")
    assert api.get(f"/v1/jobs/{job}/attempts/9").status_code == 404
    good = submit(None, "single")
    place.finished(good)
    assert api.get(f"/v1/jobs/{good}").json()["why"] is None
    assert api.get(f"/v1/jobs/{good}/attempts/1").json()["traceback"] is None
