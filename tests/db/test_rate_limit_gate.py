"""Jobs under a rate limit wait at the gate in their order, and are sent when their permit is near."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from uuid import UUID

import pytest

from tests.db import clock, steps
from tests.db.steps import Db
from tests.db.test_admit import ENGINE, READ

# A job is sent so many seconds before its permit begins (pipeline.horizon).
HORIZON = 0.25
MANY = """SELECT pipeline.submit_many('single', ARRAY(SELECT '{}'::jsonb FROM generate_series(1, %s)),
          p_rate_limit => 'api') AS id"""
PERMIT = "SELECT granted, wait FROM pipeline.take_permits('api', %s, 1, 0.25)"


def rate_limit(db: Db, rate: float | None, burst: float | None = 1, name: str = "api") -> None:
    db.execute("SELECT pipeline.set_rate_limit(%s, %s, %s)", (name, rate, burst))


def many(db: Db, count: int) -> list[UUID]:
    return [row["id"] for row in steps.rows(db, MANY, count)]


def admitted(db: Db, most: int = 1000) -> list[UUID]:
    return [row["job_id"] for row in steps.admit(db, most)]


def call(db: Db, job: UUID) -> float | None:
    """The job is claimed and takes a permit; None is at once, or nearly."""
    assert steps.claim(db, job)["verdict"] == "claimed"
    [permit] = steps.rows(db, PERMIT, job)
    return None if permit["granted"] else float(permit["wait"])


def next_due(db: Db) -> tuple[float | None, bool]:
    [row] = steps.rows(db, "SELECT * FROM pipeline.next_due()")
    return row["seconds"], row["waiting"]


def test_only_those_whose_permit_is_near_are_sent(database: Db) -> None:
    """Five a second, a bucket of two: three of three thousand. Each finds its permit there and none comes twice."""
    rate_limit(database, 5, 2)
    jobs = many(database, 3000)
    began, sent = monotonic(), admitted(database)
    assert sent == jobs[:3] and admitted(database) == []
    assert [call(database, job) for job in sent] == [None] * 3
    for _ in range(20):
        clock.let_pass(database, 0.2)
        sent += (near := admitted(database))
        assert near and [call(database, job) for job in near] == [None] * len(near)
    assert sent == jobs[: len(sent)] and len(sent) <= 2 + 5 * (20 * 0.2 + monotonic() - began + HORIZON)
    assert steps.one(database, "SELECT count(*) FROM pipeline.permits") == 0


def test_the_highest_priority_goes_first_and_then_the_oldest(database: Db) -> None:
    """G9 holds for those who wait for a rate, too."""
    rate_limit(database, 1, 1)
    jobs = [steps.submit(database, rate_limit="api", priority=priority) for priority in (0, 5, 0, 9)]
    order = []
    for _ in jobs:
        [job] = admitted(database)
        order.append(job)
        call(database, job)
        clock.let_pass(database, 1)
    assert order == [jobs[n] for n in (3, 1, 0, 2)]


def test_five_thousand_cancelled_jobs_leave_the_rate_limit_to_the_next(database: Db) -> None:
    """W2: a single job had to wait 1,308 s for five thousand that had been cancelled."""
    rate_limit(database, 5, 5)
    jobs = many(database, 5000)
    for _ in range(3):
        for job in admitted(database):
            wait = call(database, job)
            if wait is not None:
                steps.snooze(database, steps.Hold(job, 1), delay=wait)
    database.execute("SELECT pipeline.cancel_many(%s)", (jobs,))
    clean = steps.submit(database, rate_limit="api")
    began, sent = monotonic(), admitted(database)
    while clean not in sent:
        sent += admitted(database)
        assert monotonic() - began < 1, "not even sent"
    wait = monotonic() - began + (call(database, clean) or 0.25)
    print(f"5,000 jobs cancelled on a limit of 5/s: the next job's call starts within {wait:.2f} s")
    assert wait < 1


def test_a_job_that_asks_inside_its_phase_without_a_rate_limit_still_gets_its_place(database: Db) -> None:
    """Those places are given back by a cancel, too: five thousand were promised, and the next call is near."""
    rate_limit(database, 5, 5)
    jobs = [row["id"] for row in steps.rows(database, MANY.replace("'api'", "NULL"), 500)]
    for job in jobs:
        steps.rows(database, PERMIT, job)
    alone = steps.submit(database)
    assert steps.rows(database, PERMIT, alone)[0]["wait"] > 90
    database.execute("SELECT pipeline.cancel_many(%s)", ([*jobs, alone],))
    [permit] = steps.rows(database, PERMIT, steps.submit(database))
    assert (permit["wait"] or 0.25) < 1


def test_a_phase_that_nobody_works_on_keeps_nobody_else_waiting(database: Db) -> None:
    """Two workflows share a rate limit; the messages of one lie in a queue without a worker, those of another are paused."""
    rate_limit(database, 1, 1)
    for workflow in ("small", "triple"):
        for _ in range(5):
            steps.submit(database, workflow, rate_limit="api")
    database.execute("UPDATE pipeline.phases SET paused_until = now() + interval '1 hour' WHERE queue = 'triple.first'")
    admitted(database)
    jobs = many(database, 3)
    for job in jobs:
        assert admitted(database) == [job]
        call(database, job)
        clock.let_pass(database, 1)


@pytest.mark.parametrize("how", ["no rate", "no rate limit"])
def test_a_rate_that_is_taken_away_holds_nobody(database: Db, how: str) -> None:
    """What waited for it goes at once."""
    rate_limit(database, 0.01, 1)
    jobs = many(database, 5)
    assert admitted(database) == jobs[:1]
    if how == "no rate":
        rate_limit(database, None)
    else:
        database.execute("DELETE FROM pipeline.rate_limits WHERE name = 'api'")
    assert next_due(database)[0] == 0
    assert admitted(database) == jobs[1:]


def test_a_pause_holds_those_who_wait_for_the_rate_and_time_ends_it(database: Db) -> None:
    """Nobody has to open the rate limit; then they go at its rate. The report says why they wait."""
    rate_limit(database, 1, 1)
    jobs = many(database, 3)
    database.execute("SELECT pipeline.pause_rate_limit('api', now() + interval '60 seconds', 'breaker')")
    assert admitted(database) == []
    assert next_due(database)[0] == pytest.approx(60, abs=0.5)
    waits = "SELECT waiting FROM pipeline.stats() WHERE queue = 'single.act'"
    assert steps.one(database, waits) == {"breaker": 3}
    clock.let_pass(database, 61)
    assert admitted(database) == jobs[:1]
    assert steps.one(database, waits) == {"rate_limit": 2}


def test_scheduled_and_replayed_jobs_wait_for_the_rate_as_well(database: Db) -> None:
    """However they come to wait, only those whose permit is near are sent."""
    rate_limit(database, 1, 1)
    failed = [steps.held(database) for _ in range(3)]
    for hold in failed:
        steps.fail(database, hold)
        database.execute("UPDATE pipeline.jobs SET rate_limit = 'api' WHERE id = %s", (hold.job,))
        assert steps.replay(database, hold.job)
    scheduled = [steps.submit(database, rate_limit="api", due=5) for _ in range(3)]
    clock.let_pass(database, 6)
    order = []
    while sent := admitted(database):
        assert len(sent) == 1
        order += sent
        call(database, sent[0])
        clock.let_pass(database, 1)
    assert order == [*(hold.job for hold in failed), *scheduled]


def test_what_comes_back_was_let_through_already(database: Db) -> None:
    """A crash, a deploy and a permit of its own do not send a job to the end of a long line."""
    rate_limit(database, 1, 1)
    [job, *others] = many(database, 100)
    ways: tuple[Callable[[steps.Hold], object], ...] = (
        lambda hold: steps.crash(database, hold, counts=False),
        lambda hold: steps.snooze(database, hold, outcome="released", reason="shutdown"),
        lambda hold: steps.snooze(database, hold, delay=0.5),
    )
    for back in ways:
        back(steps.hold(database, job))
        clock.let_pass(database, 0.6)
        assert job in admitted(database)
    assert not steps.cancel(database, UUID(int=0)) and len(others) == 99


def test_the_relay_is_told_when_the_next_permit_is_near_and_not_sooner(database: Db) -> None:
    """One a minute: it sleeps for nearly a minute. Unclaimed messages are looked at as those of a full queue are."""
    rate_limit(database, 1 / 60, 1)
    jobs = many(database, 3)
    assert next_due(database) == (0, False)
    assert admitted(database) == jobs[:1]
    assert next_due(database) == (None, True)
    call(database, jobs[0])
    seconds, waiting = next_due(database)
    assert seconds == pytest.approx(60 - 0.25, abs=0.5) and not waiting
    database.execute("SELECT pipeline.cancel_many(%s)", (jobs,))
    assert next_due(database) == (None, False)


@pytest.mark.parametrize("rate", [5, 50, 1000])
def test_a_fast_rate_limit_is_looked_at_a_few_times_a_second(database: Db, rate: float) -> None:
    """And each time before the permits of those it lets through begin."""
    rate_limit(database, rate, 1)
    many(database, 1000)
    for job in admitted(database):
        steps.claim(database, job)
    database.execute("UPDATE pipeline.rate_limits SET next_at = now() + make_interval(secs => 0.25 + 1 / rate)")
    seconds, _ = next_due(database)
    assert seconds is not None
    assert 0.04 <= seconds <= 0.25


def test_the_gate_reads_no_more_than_it_sends(database: Db) -> None:
    """Five thousand wait for one rate limit: they are neither read nor counted at each look."""
    database.execute(ENGINE)
    rate_limit(database, 100, 25)
    many(database, 5000)
    database.execute("VACUUM ANALYZE pipeline.jobs, pipeline.outbox, pipeline.phases, pipeline.rate_limits")
    with database.transaction():
        before = steps.one(database, READ)
        assert len(admitted(database, 50)) == 50
        next_due(database)
        assert steps.one(database, READ) - before < 50 * 10
