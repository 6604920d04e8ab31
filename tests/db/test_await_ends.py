"""await_ends: whoever waits for a job's end is told when it commits, and nobody else's commit is notified."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.db import steps
from tests.db.conftest import Connect
from tests.db.steps import Db, Hold

WAITS_FOR_A_LOCK = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype IN ('tuple', 'transactionid')"
RACES = (1_000, pytest.param(10_000, marks=pytest.mark.slow))


def await_ends(db: Db, *jobs: UUID) -> list[str]:
    """The answers, in the order of the jobs."""
    found = steps.rows(db, "SELECT * FROM pipeline.await_ends(%s::uuid[])", list(jobs))
    answers = {row["job_id"]: row["answer"] for row in found}
    return [answers[job] for job in jobs]


@pytest.fixture
def listener(connect: Connect) -> Db:
    listening = connect()
    listening.execute("LISTEN pipeline_ended")
    return listening


def heard(listener: Db, expected: int = 0) -> set[UUID]:
    """What was said. A NOTIFY is there when its transaction's answer is: nothing needs to be waited for but a few bytes."""
    said: set[UUID] = set()
    deadline = time.monotonic() + 10
    listener.execute("SELECT 1")
    while True:
        said |= {UUID(one.payload) for one in listener.notifies(timeout=0)}
        if len(said) >= expected or time.monotonic() > deadline:
            return said


def complete(db: Db, hold: Hold) -> None:
    assert steps.complete(db, hold)["verdict"] == "done"


def fail(db: Db, hold: Hold) -> None:
    assert steps.fail(db, hold) == "failed"


def cancel(db: Db, hold: Hold) -> None:
    assert steps.cancel(db, hold.job)


def poison(db: Db, hold: Hold) -> None:
    db.execute("UPDATE pipeline.jobs SET crashes = 2 WHERE id = %s", (hold.job,))
    assert steps.crash(db, hold) == "poisoned"


def exhaust(db: Db, hold: Hold) -> None:
    db.execute("UPDATE pipeline.jobs SET attempts = 2 WHERE id = %s", (hold.job,))
    assert steps.retry(db, hold) == "exhausted"


def give_up(db: Db, hold: Hold) -> None:
    """RabbitMQ did."""
    steps.snooze(db, hold)
    assert steps.undeliverable(db, hold.job, steps.job(db, hold.job)["send"])


def delete(db: Db, hold: Hold) -> None:
    assert steps.one(db, "SELECT pipeline.delete(%s)", [hold.job]) == 1


ENDS = [complete, fail, cancel, poison, exhaust, give_up, delete]


@pytest.mark.parametrize("end", ENDS)
def test_every_end_is_notified_to_whoever_waits_for_it_and_only_then(
    database: Db, listener: Db, end: Callable[[Db, Hold], None]
) -> None:
    """By the transaction that makes the job final. A job that nobody waits for ends without a NOTIFY."""
    awaited, other = steps.held(database), steps.held(database)
    assert await_ends(database, awaited.job) == ["noted"]
    end(database, other)
    assert heard(listener) == set()
    with database.transaction():
        end(database, awaited)
        assert heard(listener) == set()
    assert heard(listener, 1) == {awaited.job}


def test_a_whole_life_that_nobody_waits_for_sends_no_word(database: Db, listener: Db) -> None:
    """On no channel that any of our functions names, while the relay is awake."""
    database.execute("SELECT setval('pipeline.relay_asleep', 2)")
    sources = "SELECT string_agg(prosrc, '') FROM pg_proc WHERE pronamespace = 'pipeline'::regnamespace"
    channels = set(re.findall(r"pg_notify\('(\w+)'", steps.one(database, sources)))
    assert channels >= {"pipeline_ended", "pipeline_relay", "pipeline_maintenance"}
    for channel in channels:
        listener.execute(f"LISTEN {channel}")
    hold = steps.held(database, "triple")
    steps.retry(database, hold)
    hold = steps.hold(database, hold.job)
    for _ in range(2):
        steps.complete(database, hold)
        hold = steps.hold(database, hold.job)
    complete(database, hold)
    listener.execute("SELECT 1")
    assert list(listener.notifies(timeout=0)) == []


def test_what_has_ended_or_never_was_is_answered_at_once(database: Db) -> None:
    """Nobody waits for what cannot come."""
    ended, open_, never = steps.held(database), steps.submit(database), uuid4()
    complete(database, ended)
    assert await_ends(database, ended.job, open_, never) == ["ended", "noted", "unknown"]


def test_a_mark_stays_with_a_job_that_goes_on(database: Db, listener: Db) -> None:
    """Retry, snooze, crash, reset, hand-over and continuing keep its row, or make it anew with the same mark."""
    hold = steps.held(database, "triple")
    assert await_ends(database, hold.job) == ["noted"]
    for step in (steps.retry, steps.snooze, steps.crash):
        step(database, hold)
        hold = steps.hold(database, hold.job)
    assert steps.one(database, "SELECT pipeline.reset(%s, 'by hand')", hold.job) == "reset"
    hold = steps.hold(database, hold.job)
    steps.complete(database, hold)
    hold = steps.hold(database, hold.job)
    third = steps.complete(database, hold, continuing="triple.third")
    assert third["verdict"] == "continued" and heard(listener) == set()
    complete(database, Hold(hold.job, third["fence"]))
    assert heard(listener, 1) == {hold.job}


def test_a_replayed_job_is_to_be_asked_for_again(database: Db, listener: Db) -> None:
    """Its failure was an end; what comes then is another one."""
    hold = steps.held(database)
    await_ends(database, hold.job)
    fail(database, hold)
    assert heard(listener, 1) == {hold.job}
    steps.replay(database, hold.job)
    again = steps.hold(database, hold.job)
    assert await_ends(database, hold.job) == ["noted"]
    complete(database, again)
    assert heard(listener, 1) == {hold.job}


@pytest.mark.parametrize("end", [complete, fail, cancel])
def test_an_end_waits_for_a_mark_that_came_first_and_sees_it(
    connect: Connect, listener: Db, end: Callable[[Db, Hold], None]
) -> None:
    """Also where its statement began before the mark committed."""
    waiting, ending = connect(), connect()
    hold = steps.held(ending)
    with ThreadPoolExecutor(1) as thread:
        with waiting.transaction():
            assert await_ends(waiting, hold.job) == ["noted"]
            ended = thread.submit(end, ending, hold)
            _until(lambda: steps.one(waiting, WAITS_FOR_A_LOCK) == 1)
        ended.result(10)
    assert heard(listener, 1) == {hold.job}


@pytest.mark.parametrize("commits", [True, False])
def test_a_mark_never_waits_for_an_open_transaction(connect: Connect, listener: Db, commits: bool) -> None:
    """An application has cancelled the job and not committed: locked, and asked again it is ended, or noted."""
    waiting, application = connect(), connect()
    job = steps.submit(waiting)
    with application.transaction(force_rollback=not commits):
        assert steps.cancel(application, job)
        assert await_ends(waiting, job) == ["locked"]
    assert await_ends(waiting, job) == ["ended" if commits else "noted"]
    assert heard(listener) == set()


def test_whoever_ends_a_job_from_an_old_snapshot_is_refused_and_not_silent(connect: Connect) -> None:
    """REPEATABLE READ: the mark came after its snapshot. Such callers repeat their transaction, as for any other change."""
    waiting, application = connect(), connect()
    job = steps.submit(waiting)
    application.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    application.execute("SELECT count(*) FROM pipeline.jobs")
    assert await_ends(waiting, job) == ["noted"]
    with pytest.raises(psycopg.errors.SerializationFailure):
        steps.cancel(application, job)
    application.execute("ROLLBACK")


def test_a_marked_row_is_found_by_the_gate(connect: Connect) -> None:
    """It is skipped while the mark is being written, and there for the next look."""
    waiting, relay = connect(), connect()
    job = steps.submit(relay)
    with waiting.transaction():
        await_ends(waiting, job)
        assert steps.admit(relay) == []
    assert [row["job_id"] for row in steps.admit(relay)] == [job]


@pytest.mark.parametrize("races", RACES)
def test_of_many_races_of_a_mark_with_an_end_none_is_lost(connect: Connect, listener: Db, races: int) -> None:
    """Whoever was noted is told; whoever was not is answered that it has ended."""
    dice = random.Random(7)
    waiting, ending = connect(), connect()
    for one in (waiting, ending):
        one.execute("SET synchronous_commit = off")
    holds = _many(ending, races)
    start = threading.Barrier(2)
    ways = [dice.choice((complete, fail, cancel)) for _ in holds]
    # Both begin at the same moment; the one or the other is held back by about as long as a statement takes.
    late = [(dice.uniform(-0.0004, 0.0006)) for _ in holds]
    answers: Counter[str] = Counter()

    def end_all() -> None:
        for way, hold, ahead in zip(ways, holds, late, strict=True):
            start.wait(20)
            _spend(ahead)
            way(ending, hold)

    noted = set()
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(end_all)
        for hold, ahead in zip(holds, late, strict=True):
            start.wait(20)
            _spend(-ahead)
            while (answer := await_ends(waiting, hold.job)[0]) == "locked":
                answers["locked"] += 1
            answers[answer] += 1
            if answer == "noted":
                noted.add(hold.job)
        done.result(20)
    print(f"\n{dict(answers)}")
    assert answers["noted"] + answers["ended"] == races
    assert min(answers["noted"], answers["ended"], answers["locked"]) > 0
    assert heard(listener, len(noted)) == noted


def _many(db: Db, n: int) -> list[Hold]:
    """Jobs that run."""
    db.execute("UPDATE pipeline.phases SET queue_limit = %s WHERE queue = 'single.act'", (n,))
    db.execute("SELECT pipeline.submit_many('single', array_fill('{}'::jsonb, ARRAY[%s]))", (n,))
    jobs = [row["job_id"] for row in steps.admit(db, n)]
    claimed = steps.claim_all(db, [(job, "single.act", 1, next(steps.deliveries)) for job in jobs])
    return [Hold(job, row["fence"]) for job, row in zip(jobs, claimed, strict=True)]


def _spend(seconds: float) -> None:
    """So short a time cannot be slept."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)
