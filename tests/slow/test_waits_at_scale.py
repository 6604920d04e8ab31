"""Ten thousand children, a hundred thousand, and ten thousand races between signals and timeouts, with real workers."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from pipeline import JobHandle, submit_many
from pipeline.dev.supervise import Program, Supervisor
from tests.place import Place
from tests.wait_workflows import crowd, race

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
MODULE = {"PIPELINE_WORKFLOWS": "tests.wait_workflows"}
CHILDREN, KILLS = 10_000, 20
BODIES: list[dict[str, Any]] = [{"url": f"http://example.org/{n}", "bad": n % 33 == 32} for n in range(CHILDREN)]
BAD = sum(body["bad"] for body in BODIES)
ENDED = "SELECT count(*) FROM pipeline.jobs WHERE workflow = 'page-audit' AND completed_at IS NOT NULL"
# What clients of PostgreSQL say in this database, without the frames of transactions and without this test's own words.
SAID = """SELECT regexp_replace(s.query, '\\s+', ' ', 'g') AS query, s.calls
    FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
    WHERE d.datname = current_database() AND s.toplevel AND s.query NOT LIKE '%%pg_stat%%'
        AND s.query !~* '^(begin|commit|rollback|savepoint|release)' AND s.query NOT LIKE '%%workflow = $1 AND completed_at%%'"""


def test_a_parent_of_ten_thousand_children_continues_once_through_twenty_kills(users: Place) -> None:
    """With an end for each of them, in order (which the phase itself checks); three of a hundred fail."""
    command = [sys.executable, "-m", "dramatiq", "pipeline.actors", "--processes", "1", "--threads", "4"]
    environment = {**users.environment(), **MODULE}
    programs = [Program(f"worker-{n}", command, environment, grace=1) for n in range(3)]
    supervisor = Supervisor(programs, say=lambda text: None)
    chance, began = random.Random(23), time.monotonic()
    supervisor.start()
    try:
        users.until(lambda: len(users.booted()) == 3, 60, "workers")
        job = crowd.submit({"children": CHILDREN})
        for kill in range(1, KILLS + 1):
            users.until(partial(_enough, users, kill * CHILDREN // (KILLS + 1)), 300, f"kill {kill}")
            users.until(lambda: len(users.booted()) > 1, 60, "another worker")
            os.kill(chance.choice(users.booted()), signal.SIGKILL)
        assert job.result(timeout=600) == [CHILDREN, CHILDREN - BAD, BAD]
    finally:
        supervisor.stop()
    crashed = users.count("SELECT count(*) FROM pipeline.attempts WHERE outcome IN ('crashed', 'stale')")
    print(f"\n{CHILDREN} children, {KILLS} kills, {crashed} attempts cut off, in {time.monotonic() - began:.0f} s")
    history = [(row["phase"], row["outcome"]) for row in users.attempts(job.id) if row["outcome"] != "crashed"]
    assert history == [("gather", "succeeded"), ("count-ends", "succeeded")]
    assert users.count("SELECT count(*) FROM pipeline.batches") == 1
    twice = "SELECT count(*) FROM (SELECT FROM pipeline.attempts WHERE outcome = 'succeeded' GROUP BY job_id, phase HAVING count(*) > 1) t"
    assert users.count(twice) == 0
    assert users.rows("SELECT * FROM pipeline.verify(false)") == []


def _enough(place: Place, ended: int) -> bool:
    return place.count(ENDED) >= ended


def test_the_fan_in_costs_next_to_no_statements(users: Place) -> None:
    """Ten thousand children against the same ten thousand jobs that nobody waits for."""
    users.worker(processes=2, threads=4, settings=MODULE)
    users.db.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    crowd.submit({"children": 100}).result(timeout=60)
    before = said(users)
    jobs = submit_many(None, "page-audit", BODIES)
    ended = "SELECT count(*) FROM pipeline.jobs WHERE id = ANY (%s) AND completed_at IS NOT NULL /* pg_stat */"
    users.until(lambda: users.count(ended, jobs) == CHILDREN, 600, "the jobs to end")
    alone = since(users, before)
    before = said(users)
    assert crowd.submit({"children": CHILDREN}).result(timeout=600) == [CHILDREN, CHILDREN - BAD, BAD]
    together = since(users, before)
    more = {query: n for query in together if (n := together[query] - alone.get(query, 0)) > 5}
    for query, n in sorted(more.items(), key=lambda one: -one[1])[:8]:
        print(f"\n{n:6} more: {query[:110]}", end="")
    figure = (sum(together.values()) - sum(alone.values())) / CHILDREN
    print(f"\n{sum(alone.values())} statements alone, {sum(together.values())} as children: {figure:+.3f} a child")
    assert figure <= 0.2


def said(place: Place) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in place.rows(SAID):
        found[row["query"]] = found.get(row["query"], 0) + row["calls"]
    return found


def since(place: Place, before: dict[str, int]) -> dict[str, int]:
    return {query: calls - before.get(query, 0) for query, calls in said(place).items()}


def test_a_hundred_thousand_children_in_one_transaction(users: Place) -> None:
    """Spawned by one completion, and cancelled with their parent. Time and memory are printed."""
    users.worker(threads=1, queues=("crowd.gather", "crowd.count-ends"), settings=MODULE)
    [pid] = users.pids()
    crowd.submit({"children": 0}).result(timeout=60)
    before, began = peak(pid), time.monotonic()
    job = crowd.submit({"children": 100_000})
    waits = "SELECT count(*) FROM pipeline.outbox WHERE job_id = %s AND waits_for LIKE 'children:%%'"
    users.until(lambda: users.count(waits, job.id), 600, "the wait for children")
    spawned = time.monotonic() - began
    children = users.count("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'page-audit'")
    print(
        f"\n{children} children in {spawned:.1f} s; the worker grew by {peak(pid) - before} MB to {peak(pid)} MB",
        end="",
    )
    began = time.monotonic()
    assert children == 100_000 and job.cancel()
    print(f"; cancelled in {time.monotonic() - began:.1f} s")
    assert users.count("SELECT count(*) FROM pipeline.jobs WHERE completed_at IS NULL") == 0
    assert [row["outcome"] for row in users.attempts(job.id)] == ["succeeded", "cancelled"]


def peak(pid: int) -> int:
    """The most memory that the process has had, in MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) // 1024


RACES, CLIENTS = 10_000, 4
# Each client tells jobs that are about to be, or just are, out of time.
TELL = """WITH edge AS MATERIALIZED (
        SELECT o.job_id FROM pipeline.outbox o WHERE o.waits_for = 'event:answer' AND abs(hashtext(o.job_id::text)) %% %s = %s
            AND o.due_at < clock_timestamp() + make_interval(secs => %s) ORDER BY o.due_at LIMIT 5)
    INSERT INTO told SELECT e.job_id, pipeline.signal(e.job_id, 'answer', '"signal"') FROM edge e
    WHERE NOT EXISTS (SELECT FROM told t WHERE t.job = e.job_id)"""
# What the client was answered, the row, the history, the result and the signal itself must say the same.
JUDGED = """SELECT coalesce(t.answer, 'none') AS answer, j.status, j.result->>'ask' AS ask, j.result->>'tell' AS tell,
        a.wait_reason, count(*) AS n, bool_or(s.taken_at IS NOT NULL) AS taken
    FROM pipeline.jobs j LEFT JOIN told t ON t.job = j.id LEFT JOIN pipeline.signals s ON s.job_id = j.id
        JOIN pipeline.attempts a ON a.job_id = j.id AND a.phase = 'tell'
    WHERE j.workflow = 'race' GROUP BY 1, 2, 3, 4, 5"""
WON = {"status": "succeeded", "ask": "signal", "tell": "signal", "wait_reason": "signalled", "taken": True}
OUT_OF_TIME = {"status": "succeeded", "ask": "timeout", "tell": "timeout", "wait_reason": "event", "taken": False}


def test_ten_thousand_signals_race_timeouts_and_one_wins(users: Place) -> None:
    """With the real relay, and clients that sign at the last moment."""
    users.db.execute("CREATE TABLE told (job uuid PRIMARY KEY, answer text NOT NULL)")
    users.worker(processes=2, threads=8, settings=MODULE)
    chance, over = random.Random(7), threading.Event()
    clients = [threading.Thread(target=_tell, args=(users.database_url, n, over)) for n in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        for _ in range(RACES // 1000):
            jobs = [race.submit({"seconds": round(chance.uniform(1, 4), 3)}) for _ in range(1000)]
            users.until(partial(_ended, users, jobs), 300, "a round of races")
    finally:
        over.set()
        for client in clients:
            client.join()
    found = users.rows(JUDGED)
    counts: dict[str, int] = {}
    for row in found:
        answer, n = row.pop("answer"), row.pop("n")
        counts[answer] = counts.get(answer, 0) + n
        assert row == (WON if answer == "delivered" else OUT_OF_TIME), (answer, row)
    print(f"\n{sum(counts.values())} races: {counts}")
    assert sum(counts.values()) == RACES
    assert min(counts["delivered"], counts["kept"]) > RACES // 20


def _tell(url: str, number: int, over: threading.Event) -> None:
    chance = random.Random(number)
    with psycopg.connect(url, autocommit=True) as connection:
        while not over.is_set():
            connection.execute(TELL, (CLIENTS, number, chance.uniform(-0.01, 0.005)))


def _ended(place: Place, jobs: list[JobHandle[Any]]) -> bool:
    ids: list[UUID] = [job.id for job in jobs]
    ended = "SELECT count(*) FROM pipeline.jobs WHERE id = ANY (%s) AND completed_at IS NOT NULL"
    return place.count(ended, ids) == len(ids)
