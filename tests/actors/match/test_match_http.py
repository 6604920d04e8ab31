"""Projects over HTTP, on a real database."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import httpx
import pytest

from pipeline import settings
from pipeline.front.api.serve import server
from tests.place import Place


@pytest.fixture
def api(place: Place) -> Iterator[httpx.Client]:
    """A client of a real server in a thread."""
    running = server(settings.load(), "127.0.0.1", 0)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    place.until(lambda: running.started, 20, "the server")
    port = running.servers[0].sockets[0].getsockname()[1]
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        yield client
    running.should_exit = True
    thread.join(10)


def test_a_project_by_its_requests(api: httpx.Client, place: Place) -> None:
    """Create, fill by JSON and CSV, match (202 at once), look, cancel, delete."""
    made = api.post("/v1/projects", json={"name": "people", "settings": {"languages": ["en"], "type": "human"}})
    assert made.status_code == 201
    url = made.headers["location"]
    assert api.post(f"{url}/match").status_code == 409
    assert api.post(f"{url}/entries", json=[{"name": "Jane Doe", "born": 1850}]).json() == {"added": 1}
    rows = (b"%d,Person %d\n" % (n, n) for n in range(2000))
    sent = api.post(f"{url}/entries", content=iter([b"id,name\n", *rows]), headers={"Content-Type": "text/csv"})
    assert (sent.status_code, sent.json()) == (201, {"added": 2000})
    started = api.post(f"{url}/match", headers={"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"})
    assert (started.status_code, started.headers["location"], started.json()["tasks"]) == (202, url, 2001)
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE trace_id = %s", "a" * 32) == 2001
    assert api.post(f"{url}/match").status_code == 409
    shown = api.get(url).json()
    assert (shown["status"], shown["tasks"], shown["done"]) == ("MATCHING", {"total": 2001, "queued": 2001}, 0.0)
    page = api.get(f"{url}/tasks", params={"limit": 150, "status": "QUEUED"}).json()
    assert len(page["items"]) == 150 and page["items"][0]["name"] == "Jane Doe"
    following = api.get(f"{url}/tasks", params={"cursor": page["next"], "limit": 1}).json()
    assert following["items"][0]["name"] == "Person 149"
    place.db.execute("UPDATE tasks SET status = 'NEW' WHERE id > (SELECT min(id) + 9 FROM tasks)")
    assert api.post(f"{url}/cancel").json()["cancelled"] == 10
    assert [row["status"] for row in api.get("/v1/projects").json()["items"]] == ["CANCELLED"]
    assert api.delete(url).status_code == 204
    assert api.get(url).status_code == api.delete(url).status_code == api.get(f"{url}/tasks").status_code == 404
    assert place.count("SELECT count(*) FROM pipeline.jobs") == 0


@pytest.mark.parametrize(
    ("content", "kind", "status", "says"),
    [
        (b"id,name\n1,a\n2\n", "text/csv", 422, "line 3 has no name"),
        (b"name\n\xff", "text/csv; charset=utf-8", 422, "not UTF-8"),
        (b"[", "application/json", 400, "not valid JSON"),
        (b"[]", "application/json", 422, "at least 1"),
        (b'[{"name": ""}]', "application/json", 422, "0.name"),
        (b'[{"name": "x", "a": "\\u0000"}]', "application/json", 422, "NUL"),
        (b"<a/>", "text/xml", 415, "application/json or text/csv"),
    ],
)
def test_what_cannot_be_taken_is_a_problem_that_says_so(
    api: httpx.Client, content: bytes, kind: str, status: int, says: str
) -> None:
    """And nothing is added."""
    url = api.post("/v1/projects", json={"name": "people"}).headers["location"]
    answer = api.post(f"{url}/entries", content=content, headers={"Content-Type": kind})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json" and says in answer.json()["detail"]
    assert api.get(url).json()["tasks"] == {"total": 0}
