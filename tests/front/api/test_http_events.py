"""Events over HTTP: telling a job of one, with a token or by a link."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import ModuleType
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from pydantic import SecretStr

from pipeline import settings
from pipeline.front.api.http import shield
from pipeline.journey import event_links
from pipeline.journey.submit import submit
from tests.db import steps
from tests.front.api.conftest import TOKENS, Serve
from tests.front.waiting import end, parent, waiting
from tests.place import Place

SECRET = "s" * 40
HTML = {"Accept": "text/html,application/xhtml+xml"}


def tell(api: httpx.Client, job: UUID, event: str = "approved", **given: Any) -> httpx.Response:
    return api.post(f"/v1/jobs/{job}/events/{event}", **given)


def taken(place: Place, job: UUID) -> list[Any]:
    """The bodies that ended waits."""
    rows = place.rows("SELECT body FROM pipeline.signals WHERE job_id = %s AND taken_at IS NOT NULL ORDER BY seq", job)
    return [row["body"] for row in rows]


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


def test_a_viewer_tells_nobody(place: Place, guarded: httpx.Client, bearer: dict[str, dict[str, str]]) -> None:
    job = waiting(place)
    assert tell(guarded, job).status_code == 401
    assert tell(guarded, job, headers=bearer["viewer"]).status_code == 403
    assert tell(guarded, job, headers=bearer["operator"]).status_code == 200


def asks(place: Place) -> UUID:
    """A job of the shop that waits for a decision: {"yes": bool, "note": str}."""
    job = submit(None, "shop-returns", {})
    hold = steps.hold(place.db, job)
    steps.complete(place.db, hold, None, following={"event": "decided"})
    return job


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


# ---- links


@pytest.fixture
def linked(serve: Serve) -> Iterator[httpx.Client]:
    """A client without credentials, of a server with tokens and a secret."""
    address = serve(api_tokens=SecretStr(TOKENS), event_secret=SecretStr(SECRET))
    with httpx.Client(base_url=address, timeout=20) as client:
        yield client


def path(job: UUID, event: str = "approved", *, secret: str = SECRET, **more: Any) -> str:
    """Of a link that was made elsewhere."""
    config = settings.load(event_secret=SecretStr(secret))
    given = {"expires": timedelta(days=1), **more}
    return event_links.event_link(job, event, config=config, **given).removeprefix(config.address_of_api)


def test_a_link_asks_and_only_the_button_tells(place: Place, linked: httpx.Client) -> None:
    """Mail programs open every link to see whether it is dangerous."""
    job = waiting(place)
    link = path(job, body={"by": "<b>Ada</b>"})
    for _ in range(2):
        asked = linked.get(link, headers=HTML)
        assert asked.status_code == 200 and asked.headers["content-type"].startswith("text/html")
        assert '<form method="post">' in asked.text and "approved" in asked.text
        assert "&lt;b&gt;Ada" in asked.text and "<b>Ada" not in asked.text
        assert "form-action 'self'" in asked.headers["content-security-policy"]
        assert asked.headers["referrer-policy"] == "no-referrer"
    assert taken(place, job) == [] and place.count("SELECT count(*) FROM pipeline.signals") == 0
    told = linked.post(link, headers=HTML)
    assert told.status_code == 200 and "The job continues." in told.text
    assert taken(place, job) == [{"by": "<b>Ada</b>"}]


def test_a_link_tells_once(place: Place, linked: httpx.Client) -> None:
    """Also when it is clicked ten times at once, and also of two links."""
    job = waiting(place)
    yes, no = path(job, body=True), path(job, body=False)
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda n: linked.post((yes, no)[n % 2]).status_code, range(10)))
    assert sorted(answers) == [200] + [409] * 9
    assert place.count("SELECT count(*) FROM pipeline.signals") == 1
    page = linked.get(yes, headers=HTML)
    assert page.status_code == 409 and "already" in page.text and "<form" not in page.text


def test_a_link_of_a_later_round_tells_again(place: Place, linked: httpx.Client) -> None:
    """What ended an earlier wait, or was kept for it, is not what this link is for; the earlier link stays used."""
    hold = steps.held(place.db, "triple")
    first = path(hold.job, body=1, fence=hold.fence)
    steps.complete(place.db, hold, following={"event": "approved"})
    assert linked.post(first).status_code == 200
    hold = steps.hold(place.db, hold.job)
    second, outside = path(hold.job, body=2, fence=hold.fence), path(hold.job, body=3)
    steps.complete(place.db, hold, following={"event": "approved"})
    assert linked.post(first).status_code == 409
    assert linked.post(outside).status_code == 409
    assert linked.post(second).status_code == 200
    assert taken(place, hold.job) == [1, 2]


def test_a_link_is_used_when_its_wait_took_what_somebody_else_said_before(place: Place, linked: httpx.Client) -> None:
    hold = steps.held(place.db, "triple")
    place.rows("SELECT pipeline.signal(%s, 'approved', '1')", hold.job)
    steps.complete(place.db, hold)
    hold = steps.hold(place.db, hold.job)
    link = path(hold.job, fence=hold.fence)
    steps.complete(place.db, hold, following={"event": "approved"})
    assert taken(place, hold.job) == [1]
    assert linked.post(link).status_code == 409
    assert place.count("SELECT count(*) FROM pipeline.signals") == 1


def test_forged_expired_and_strange_links_tell_nobody(
    place: Place, linked: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """404, 410; a page for a person, a problem for a program."""
    job, other = waiting(place), waiting(place)
    good = path(job)
    said, signature = good.rpartition("/")[2].split(".")
    of_other = path(other).rpartition("/")[2].split(".")[0]
    with monkeypatch.context() as past:
        past.setattr(event_links, "time", lambda: 1000.0)
        late = path(job)
    cases = {
        path(job, secret="f" * 40): 404,
        f"/v1/events/{of_other}.{signature}": 404,
        f"/v1/events/{said}": 404,
        f"/v1/events/{'x' * 3000}": 404,
        "/v1/events/a.b": 404,
        late: 410,
        path(uuid4()): 404,
    }
    for link, status in cases.items():
        for method in ("GET", "POST"):
            page = linked.request(method, link, headers=HTML)
            assert page.status_code == status and page.headers["content-type"].startswith("text/html")
            problem = linked.request(method, link)
            assert (problem.status_code, problem.headers["content-type"]) == (status, "application/problem+json")
    assert place.count("SELECT count(*) FROM pipeline.signals") == 0
    assert linked.post(good).status_code == 200


def test_a_job_that_has_ended_is_said_to_have(place: Place, linked: httpx.Client) -> None:
    job = waiting(place)
    link = path(job)
    place.rows("SELECT pipeline.cancel(%s)", job)
    assert (linked.get(link).status_code, linked.post(link).status_code) == (409, 409)


def test_another_system_calls_back_with_what_it_has_to_say(
    place: Place, returns: ModuleType, linked: httpx.Client
) -> None:
    """JSON that is sent to the link is the body, unless the link has one; it must fit."""
    job = asks(place)
    link = path(job, "decided")
    assert linked.post(link, json={"yes": "perhaps"}).status_code == 422
    assert linked.post(path(job, "decided", body={"yes": False}), json={"yes": True}).status_code == 422
    assert linked.post(link, content=b"{", headers={"Content-Type": "application/json"}).status_code == 422
    answer = linked.post(link, json={"yes": True, "note": "fine"})
    assert (answer.status_code, answer.json()["answer"]) == (200, "delivered")
    assert taken(place, job) == [{"yes": True, "note": "fine"}]


def test_an_operator_makes_links(place: Place, linked: httpx.Client, bearer: dict[str, dict[str, str]]) -> None:
    job = waiting(place)
    address = f"/v1/jobs/{job}/events/approved/link"
    assert linked.post(address).status_code == 401
    assert linked.post(address, headers=bearer["viewer"]).status_code == 403
    made = linked.post(address, headers=bearer["operator"], json={"expires": 60, "body": {"by": "Ada"}}).json()
    told = linked.post(f"/v1/events/{made['link'].rpartition('/')[2]}")
    assert told.status_code == 200 and taken(place, job) == [{"by": "Ada"}]
    place.rows("SELECT pipeline.cancel(%s)", job)
    assert linked.post(address, headers=bearer["operator"]).status_code == 409
    assert linked.post(f"/v1/jobs/{uuid4()}/events/a/link", headers=bearer["operator"]).status_code == 404


def test_without_a_secret_the_api_says_which_setting_is_missing(place: Place, api: httpx.Client) -> None:
    job = waiting(place)
    answer = api.post(f"/v1/jobs/{job}/events/approved/link")
    assert answer.status_code == 422 and "PIPELINE_EVENT_SECRET" in answer.json()["detail"]
    assert api.get(path(job)).status_code == 404


def test_a_token_is_not_repeated_where_the_server_is_at_fault(
    place: Place, linked: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in the answer nor in what is logged."""

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    said: list[dict[str, Any]] = []
    monkeypatch.setattr(shield.log, "error", lambda *_, **fields: said.append(fields), raising=False)
    monkeypatch.setattr(event_links, "read", broken)
    link = path(waiting(place))
    failed = linked.post(link)
    assert failed.status_code == 500 and failed.json()["instance"] == "/v1/events/…"
    assert [one["path"] for one in said] == ["/v1/events/…"]
    assert link.rpartition("/")[2] not in failed.text


def test_a_server_logs_no_token(place: Place) -> None:
    """Whatever becomes of the request."""
    job = waiting(place)
    link, log = path(job), place.folder / "api.log"
    with log.open("w") as stderr:
        serving = subprocess.Popen(
            [sys.executable, "-m", "pipeline.front.cli.main", "api", "--port", "0"],
            env={
                **os.environ,
                **place.environment(),
                "PIPELINE_EVENT_SECRET": SECRET,
                "PIPELINE_LOG_LEVEL": "DEBUG",
            },
            stderr=stderr,
        )
    try:
        place.until(lambda: "running on http" in log.read_text(), 30, "the server")
        address = re.findall(r"running on (http\S+)", log.read_text())[0]
        answers = [httpx.post(address + link).status_code for _ in range(2)]
        answers.append(httpx.get(f"{address}{link}x").status_code)
        answers.append(httpx.put(address + link).status_code)
    finally:
        serving.send_signal(signal.SIGINT)
        serving.wait(20)
    assert answers == [200, 409, 404, 405]
    assert "GET" not in log.read_text() and link.rpartition("/")[2][:20] not in log.read_text()


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
