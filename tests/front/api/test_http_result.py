"""GET /v1/jobs/{id}/result: the result itself, waited for without a thread or a connection to PostgreSQL."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import UUID, uuid4

import httpx
import pytest
from psycopg.types.json import Jsonb

from pipeline import submit, submit_many
from pipeline.testing.servers.workers import kill_group
from tests.db import steps
from tests.place import ROOT, Place

AWAITED = "SELECT count(*) FROM pipeline.outbox WHERE awaited"
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def finish(place: Place, job: UUID, result: object) -> None:
    hold = steps.hold(place.db, job)
    values = (1, [hold.job], [hold.fence], [Jsonb(result)], [None])
    place.db.execute("SELECT pipeline.complete(%s, %s::uuid[], %s::bigint[], %s::jsonb[], %s::text[])", values)


def awaited(place: Place, jobs: int = 1) -> None:
    place.until(lambda: place.count(AWAITED) == jobs, 10, "somebody to wait")


def test_a_result_comes_whole_as_soon_as_the_job_has_ended(place: Place, api: httpx.Client) -> None:
    """However long, and with numbers of any size."""
    job = submit(None, "single")
    large = {"text": "x" * 100_000, "number": 10**30}
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(api.get, f"/v1/jobs/{job}/result", params={"wait": 20})
        awaited(place)
        finish(place, job, large)
        committed = time.monotonic()
        answer = asked.result()
        took = time.monotonic() - committed
    assert (answer.status_code, answer.json()) == (200, {"id": str(job), "status": "succeeded", "result": large})
    assert took < 1
    assert api.get(f"/v1/jobs/{job}/result").json()["result"] == large


def test_a_job_that_has_not_ended_is_a_202_that_says_where_it_is(place: Place, api: httpx.Client) -> None:
    """At once without ``wait``, and after it otherwise."""
    job = submit(None, "single")
    began = time.monotonic()
    for wait in (0, 0.2):
        answer = api.get(f"/v1/jobs/{job}/result", params={"wait": wait})
        assert (answer.status_code, answer.headers["retry-after"]) == (202, "1")
        assert answer.json()["status"] == "pending"
        assert (answer.json()["phase"], answer.json()["wait_reason"]) == ("act", "sending")
    assert 0.2 <= time.monotonic() - began < 5


def test_a_job_that_ended_otherwise_is_a_problem_with_its_reason(place: Place, api: httpx.Client) -> None:
    """Failed and cancelled: 409, with the error. Unknown: 404."""
    failed, cancelled = steps.held(place.db), steps.submit(place.db)
    steps.fail(place.db, failed, "the shop is closed")
    steps.cancel(place.db, cancelled)
    for job, state, error in ((failed.job, "failed", "the shop is closed"), (cancelled, "cancelled", "by request")):
        answer = api.get(f"/v1/jobs/{job}/result", params={"wait": 5})
        assert (answer.status_code, answer.headers["content-type"]) == (409, "application/problem+json")
        assert (answer.json()["state"], answer.json()["phase"]) == (state, "act")
        assert error in answer.json()["detail"] and error in answer.json()["error"]
    assert api.get(f"/v1/jobs/{uuid4()}/result", params={"wait": 5}).status_code == 404


@pytest.mark.parametrize("wait", ["-1", "61", "nan", "long"])
def test_nobody_waits_longer_than_a_minute(api: httpx.Client, wait: str) -> None:
    """Refused before anything is asked."""
    assert api.get(f"/v1/jobs/{uuid4()}/result", params={"wait": wait}).status_code == 422


def test_waiting_takes_neither_a_thread_nor_a_connection(place: Place, api: httpx.Client) -> None:
    """More clients wait than the server has threads or connections; the others are answered meanwhile."""
    jobs = submit_many(None, "single", [{}] * 60)
    api.get("/v1/jobs")
    before = place.count(SESSIONS)
    with ThreadPoolExecutor(len(jobs)) as threads, httpx.Client(base_url=api.base_url, timeout=30) as client:
        asked = [threads.submit(client.get, f"/v1/jobs/{job}/result", params={"wait": 30}) for job in jobs]
        awaited(place, len(jobs))
        assert place.count(SESSIONS) <= before + 1
        assert threading.active_count() < len(jobs) + 50
        assert api.get("/v1/jobs").status_code == 200
        steps.rows(place.db, "SELECT pipeline.cancel_many(%s)", jobs)
        assert {one.result().status_code for one in asked} == {409}


@contextmanager
def api_process(place: Place, port: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "pipeline.front.cli.main", "api", "--port", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **place.environment()}, start_new_session=True)
    try:
        yield process
    finally:
        kill_group(process.pid)
        process.wait()


def result_of(job: UUID, port: int) -> httpx.Response:
    """As docs/api.md says: ask again after a 202, and when the connection breaks."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            answer = httpx.get(f"http://127.0.0.1:{port}/v1/jobs/{job}/result", params={"wait": 30}, timeout=40)
        except httpx.TransportError:
            time.sleep(0.1)
            continue
        if answer.status_code not in (202, 503):
            return answer
    raise AssertionError("no result")


def test_a_client_that_waits_survives_a_restart_of_the_api(place: Place) -> None:
    """The server that stops answers 202 at once; the next one has the result. A killed one breaks the connection."""
    port = free_port()
    job = submit(None, "single")
    with ThreadPoolExecutor(2) as threads:
        for how in (signal.SIGTERM, signal.SIGKILL):
            with api_process(place, port) as server:
                if how == signal.SIGTERM:
                    waits = threads.submit(result_of, job, port)
                awaited(place)
                place.db.execute("UPDATE pipeline.outbox SET awaited = false")
                stopped = time.monotonic()
                os.kill(server.pid, how)
                server.wait(10)
                assert time.monotonic() - stopped < 3
        with api_process(place, port):
            awaited(place)
            finish(place, job, {"n": 1})
            assert waits.result().json()["result"] == {"n": 1}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
