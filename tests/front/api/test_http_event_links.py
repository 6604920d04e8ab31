"""Links by which somebody without a token tells a job of an event."""

from __future__ import annotations

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

from pipeline import event_links, settings
from pipeline.front.api.http import shield
from tests.db import steps
from tests.front.api.conftest import TOKENS, Serve
from tests.front.waiting import asks, taken, waiting
from tests.place import Place

SECRET = "s" * 40
HTML = {"Accept": "text/html,application/xhtml+xml"}


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
