"""Every error is a problem that says what to do."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from pipeline import settings
from pipeline.store import database
from tests.front.api.conftest import Serve
from tests.place import Place

HOSTILE = [
    '{"workflow": "single", "body": {"a": "\\u0000"}}',
    '{"workflow": "single", "body": {"a": "\\ud800"}}',
    '{"workflow": "\\ud800"}',
    '{"workflow": "single\\u0000"}',
    '{"workflow": "single", "body": {"a": NaN}}',
    '{"workflow": "single", "\\ud800": 1}',
    '{"workflow": "single", "priority": 10}',
    '{"workflow": "single", "priority": "5"}',
    '{"workflow": "single", "due": "0001-01-01T00:00:00+14:00"}',
    '{"workflow": "single", "due": 5}',
    '{"workflow": "single", "body": []}',
    '{"workflow": "nothing"}',
    '{"workflow": "single", "body": {"a": "' + "x" * 66_000 + '"}}',
    "[" * 100_000,
    '{"workflow": "single", "body": ' + '{"a":' * 900 + "1" + "}" * 901,
    "{",
    "",
    "\ufeff{}",
    "null",
    '{"workflow": "single", "body": {"a": ' + "9" * 5000 + "}}",
]


def test_hostile_input_is_a_problem_and_never_a_job(place: Place, api: httpx.Client) -> None:
    """A 4xx that names the field, with a trace id and without a stack trace."""
    for text in HOSTILE:
        body = text.encode("utf-8", "surrogatepass")
        answer = api.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
        assert 400 <= answer.status_code < 500, (text[:80], answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert problem["status"] == answer.status_code and len(problem["trace_id"]) == 32
        assert "Traceback" not in answer.text and len(answer.text) < 5000
    assert place.count("SELECT count(*) FROM pipeline.jobs") == 0


def test_a_body_beyond_the_limit_is_refused_while_it_streams(serve: Serve) -> None:
    """With a Content-Length, without one, and with one that lies: 413, and the connection ends early."""
    address = serve(api_max_body=2000)
    with httpx.Client(base_url=address, timeout=10) as api:
        assert api.post("/v1/jobs", content=b"x" * 2001).status_code == 413

        def endless() -> Iterator[bytes]:
            for _ in range(10_000):
                yield b" " * 1000

        try:
            assert api.post("/v1/jobs", content=endless()).status_code == 413
        except httpx.WriteError:
            pass  # the server had hung up while the rest was being written
        assert api.post("/v1/jobs", json={"workflow": "single"}).status_code == 202
    with socket.create_connection((urlsplit(address).hostname, urlsplit(address).port), 10) as raw:
        raw.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n{}")
        assert raw.recv(4000).startswith((b"HTTP/1.1 413", b"HTTP/1.1 400"))


def test_unknown_paths_and_methods_and_cursors_are_problems(api: httpx.Client) -> None:
    """Also those that no endpoint of ours sees."""
    for answer, status in (
        (api.get("/v1/nothing"), 404),
        (api.put("/v1/jobs"), 405),
        (api.get("/v1/jobs/not-a-uuid"), 422),
        (api.get("/v1/jobs?cursor=x"), 422),
        (api.get("/v1/jobs?limit=0"), 422),
        (api.get("/v1/jobs?status=x"), 422),
        (api.get("/v1/dead/jobs?group=WzFd"), 422),
    ):
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
        assert answer.headers["x-trace-id"] == answer.json()["trace_id"]
    trace = api.get("/v1/nothing", headers={"traceparent": "00-" + "c" * 32 + "-" + "d" * 16 + "-00"}).json()[
        "trace_id"
    ]
    assert trace == "c" * 32


def test_while_postgresql_is_away_the_answer_is_503_and_then_it_works_again(
    place: Place, api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With Retry-After; the process itself stays healthy."""
    here = place.database_url
    wish = {"workflow": "single"}
    assert api.post("/v1/jobs", json=wish).status_code == 202
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody:nothing@127.0.0.1:1/none")
    settings.get.cache_clear()
    for answer in (api.post("/v1/jobs", json=wish), api.get("/v1/jobs"), api.get("/v1/workers")):
        assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
        assert int(answer.headers["retry-after"]) > 0 and "nothing" not in answer.json()["title"]
        assert "nobody" not in answer.text
    assert api.get("/healthz").status_code == 200 and api.get("/readyz").status_code == 503
    monkeypatch.setenv("DATABASE_URL", here)
    settings.get.cache_clear()
    assert api.post("/v1/jobs", json=wish).status_code == 202


def test_a_session_that_postgresql_ended_costs_one_503_at_most(place: Place, api: httpx.Client) -> None:
    """A restarted server: broken connections in the pool are replaced."""
    assert api.get("/v1/jobs").status_code == 200
    place.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    assert [api.get("/v1/jobs").status_code for _ in range(3)][1:] == [200, 200]


def test_a_statement_that_takes_too_long_is_stopped(place: Place, api: httpx.Client) -> None:
    """A lock held by somebody else does not hold the API's threads for long."""
    with database.engine().begin() as connection:
        connection.exec_driver_sql("LOCK TABLE pipeline.batches IN ACCESS EXCLUSIVE MODE")
        answer = api.get("/v1/batches")
    assert answer.status_code == 503


def test_answers_are_compressed_for_those_who_take_that_and_the_stream_of_events_is_not(api: httpx.Client) -> None:
    """Short answers are left as they are."""
    plain = api.get("/v1/openapi.json", headers={"Accept-Encoding": "identity"})
    packed = api.get("/v1/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
    assert packed.json() == plain.json()
    assert int(packed.headers["content-length"]) * 3 < len(plain.content)
    assert "content-encoding" not in api.get("/healthz").headers
    with api.stream("GET", "/v1/events", headers={"Accept-Encoding": "gzip"}) as stream:
        assert "content-encoding" not in stream.headers
        assert next(stream.iter_lines())
