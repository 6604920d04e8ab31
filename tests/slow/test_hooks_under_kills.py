"""A thousand jobs that succeed, fail and are cancelled while workers are killed: each hook has one job."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice

import pytest

from pipeline.dev.supervise import Program, Supervisor
from tests.commands import pipeline
from tests.hook_workflows import watched
from tests.place import Place
from tests.receiver import SECRET, Receiver, receiving
from tests.webhook_workflows import audited

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
JOBS, KILLS, WORKERS = 1000, 20, 3
MODULES = {"PIPELINE_WORKFLOWS": "tests.hook_workflows,tests.webhook_workflows"}
PHASES = ("in-a-thread", "on-the-loop", "in-a-child")
ENDED = "SELECT count(*) FROM pipeline.jobs WHERE workflow = %s AND completed_at IS NOT NULL"
# By the end of a job, and how many jobs its hook has: one each, if all is well.
HOOKS = """SELECT j.status, count(h.id) AS hooks, count(*) FILTER (WHERE h.body->>'state' = j.status) AS right
    FROM pipeline.jobs j LEFT JOIN pipeline.jobs h ON h.workflow = %s AND h.body->>'job' = j.id::text
    WHERE j.workflow = %s GROUP BY j.id"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def crew(users: Place, receiver: Receiver) -> Iterator[Place]:
    """Workers that are started again when they are killed."""
    secrets = {"PIPELINE_WEBHOOK_SECRETS": f"{SECRET},partner:{SECRET}"}
    told = {**receiver.settings, **secrets, **MODULES, "TEST_RECEIVER": receiver.url}
    assert pipeline(users, "migrate", **told).returncode == 0
    environment = {**users.environment(), **told}
    command = [sys.executable, "-m", "dramatiq", "pipeline.actors", "--processes", "1", "--threads", "4"]
    supervisor = Supervisor(
        [Program(f"worker-{n}", command, environment, grace=1) for n in range(WORKERS)], say=lambda text: None
    )
    supervisor.start()
    try:
        users.until(lambda: len(users.booted()) == WORKERS, 90, "workers")
        yield users
    finally:
        supervisor.stop()


def enough(place: Place, workflow: str, jobs: int) -> bool:
    return place.count(ENDED, workflow) >= jobs


def kill_one(place: Place, chance: random.Random) -> None:
    place.until(lambda: len(place.booted()) > 1, 90, "another worker")
    os.kill(chance.choice(place.booted()), signal.SIGKILL)


def hooks(place: Place, submits: str, workflow: str) -> Counter[tuple[str, int, int]]:
    """How many jobs ended so, with so many hooks' jobs, of which so many were told the truth."""
    return Counter((row["status"], row["hooks"], row["right"]) for row in place.rows(HOOKS, submits, workflow))


def test_each_hook_has_one_job_through_twenty_kills(crew: Place) -> None:
    """A third is meant to fail, in each kind of phase; of another third each is cancelled at some moment."""
    chance, began = random.Random(24), time.monotonic()
    bodies = [{"seconds": 0.05, **({"fail": PHASES[n // 3 % 3]} if n % 3 == 1 else {})} for n in range(JOBS)]
    jobs = watched.submit_many(bodies)
    doomed = iter(jobs[2::3])
    for kill in range(KILLS):
        crew.until(partial(enough, crew, "watched", kill * JOBS // (KILLS + 1)), 300, f"kill {kill}")
        # Those whose turn comes soon, and at first those whose turn it is: what waits, what runs, what has just ended.
        for job in islice(doomed, 50 if kill == 0 else JOBS // 3 // KILLS):
            job.cancel()
        kill_one(crew, chance)
    ended = Counter(row["status"] for row in crew.finished(*(job.id for job in jobs), timeout=600))
    crew.until(partial(enough, crew, "tell-the-owner", JOBS), 300, "the hooks' jobs")
    crashed = crew.count("SELECT count(*) FROM pipeline.attempts WHERE outcome IN ('crashed', 'stale')")
    found = hooks(crew, "tell-the-owner", "watched")
    print(f"\n{JOBS} jobs, {KILLS} kills, {crashed} attempts cut off, in {time.monotonic() - began:.0f} s: ", end="")
    print(", ".join(f"{n} {status} with {count} hook" for (status, count, _), n in sorted(found.items())))
    assert found == {(status, 1, 1): n for status, n in ended.items()}
    assert set(ended) == {"succeeded", "failed", "cancelled"} and min(ended.values()) > JOBS // 20
    assert crew.count("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'tell-the-owner'") == JOBS
    # What the hooks' jobs wrote is there once, too.
    assert crew.count("SELECT count(*) FROM ledger") == crew.count("SELECT count(DISTINCT job_id) FROM ledger") == JOBS
    assert crew.rows("SELECT * FROM pipeline.verify(false)") == []


def test_each_webhook_arrives_under_one_id_through_kills(crew: Place, receiver: Receiver) -> None:
    """Two addresses for a success, one for a failure; a kill may send a webhook again, and never another one."""
    chance, n = random.Random(25), 200
    jobs = audited.submit_many([{"fail": number % 4 == 0} for number in range(n)])
    for kill in range(5):
        crew.until(partial(enough, crew, "webhook", kill * n // 5), 300, f"kill {kill}")
        kill_one(crew, chance)
    ended = Counter(row["status"] for row in crew.finished(*(job.id for job in jobs), timeout=300))
    expected = 2 * ended["succeeded"] + ended["failed"]
    crew.until(partial(enough, crew, "webhook", expected), 300, "the webhooks")
    sent = [request.verified() for request in receiver.requests]
    told = {(one.id, one.body["data"]["job"]) for one in sent}
    print(f"\n{n} jobs, 5 kills: {expected} webhooks, {len(sent)} requests of {len(told)} ids")
    assert ended == {"succeeded": n - n // 4, "failed": n // 4}
    assert {job for _, job in told} == {str(job.id) for job in jobs} and len(told) == expected
    assert crew.count("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'webhook'") == expected
