"""A breaker's state, and the jobs that it holds at the gate."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.db import clock, steps
from tests.db.conftest import Connect
from tests.db.steps import Db
from tests.db.test_rate_limit_gate import admitted

FAILED = "SELECT pipeline.breaker_failed('bazaar', %s, %s, %s, 'away')"


def declare(db: Db) -> None:
    db.execute("UPDATE pipeline.phases SET rate_limit = 'bazaar', breaker = 'bazaar' WHERE queue = 'single.act'")


def enter(db: Db, job: UUID) -> str:
    return str(steps.one(db, "SELECT state FROM pipeline.breaker_enter('bazaar', %s, 60)", job))


def open_it(db: Db, job: UUID, seconds: float = 300) -> None:
    db.execute("SELECT pipeline.breaker_open('bazaar', %s, %s)", (job, seconds))


def breaker(db: Db) -> steps.Row:
    [row] = steps.rows(db, "SELECT * FROM pipeline.breakers")
    return row


def fail(db: Db, most: int = 3) -> UUID:
    """A job of the phase runs and fails, as a worker tells it."""
    hold = steps.held(db)
    assert enter(db, hold.job) == "closed"
    if steps.one(db, FAILED, hold.job, hold.fence, most) == most:
        open_it(db, hold.job)
        steps.snooze(db, hold, reason="breaker", delay=1)
    else:
        steps.retry(db, hold, delay=3600)
    return hold.job


@pytest.fixture
def opened(database: Db) -> tuple[Db, list[UUID]]:
    declare(database)
    return database, [fail(database) for _ in range(3)]


def test_failures_in_a_row_open_it_and_are_given_back(opened: tuple[Db, list[UUID]]) -> None:
    """SPEC rule 12. Jobs behind it are held: nobody is sent, and the report says why."""
    db, jobs = opened
    assert [steps.job(db, job)["attempts"] for job in jobs] == [0, 0, 0]
    assert (breaker(db)["failures"], breaker(db)["times_opened"]) == (3, 1)
    behind = [steps.submit(db) for _ in range(10)]
    clock.let_pass(db, 2)
    assert admitted(db) == []
    said = steps.rows(db, "SELECT DISTINCT waits_for FROM pipeline.job_status(%s)", behind)
    assert said == [{"waits_for": "breaker"}]
    assert steps.one(db, "SELECT waiting FROM pipeline.stats() WHERE queue = 'single.act'")["breaker"] == 11


def test_a_success_in_between_starts_the_count_again(database: Db) -> None:
    declare(database)
    fail(database)
    database.execute("SELECT pipeline.breaker_succeeded('bazaar')")
    fail(database)
    assert breaker(database)["failures"] == 1 and breaker(database)["open_until"] is None
    assert steps.one(database, "SELECT count(*) FROM pipeline.breaker_failures") == 1


def test_after_its_time_the_gate_lets_one_through_and_its_success_releases_the_rest_gradually(
    opened: tuple[Db, list[UUID]],
) -> None:
    """One, then twice as many each second: what comes later waits in the same line."""
    db, _ = opened
    for _ in range(200):
        steps.submit(db)
    clock.let_pass(db, 301)
    [probe] = admitted(db)
    assert admitted(db) == []
    hold = steps.Hold(probe, int(steps.claim(db, probe)["fence"]))
    assert enter(db, probe) == "half-open"
    assert admitted(db) == [] and breaker(db)["probes"] == 1
    assert steps.one(db, "SELECT pipeline.breaker_close('bazaar', %s)", probe)
    steps.complete(db, hold)
    steps.submit(db)
    went = [len(admitted(db))]
    for _ in range(4):
        clock.let_pass(db, 1)
        went.append(len(admitted(db)))
    assert went[0] <= 2 and sum(went) <= 32 and went[-1] > went[0]
    clock.let_pass(db, 10)
    assert len(admitted(db)) > 100


def test_only_one_probes_and_a_dead_one_gives_way(opened: tuple[Db, list[UUID]]) -> None:
    """The job itself may go on when another worker takes it over; the others, when its time is over."""
    db, jobs = opened
    clock.let_pass(db, 301)
    assert [enter(db, job) for job in (jobs[0], jobs[1], jobs[0])] == ["half-open", "open", "half-open"]
    steps.submit(db)
    assert admitted(db) == []
    clock.let_pass(db, 61)
    assert len(admitted(db)) == 1
    assert enter(db, jobs[1]) == "half-open"


def test_a_failed_probe_opens_it_again_and_one_without_a_verdict_lets_the_next_probe(
    opened: tuple[Db, list[UUID]],
) -> None:
    db, jobs = opened
    clock.let_pass(db, 301)
    assert enter(db, jobs[0]) == "half-open"
    db.execute("SELECT pipeline.breaker_leave('bazaar', %s)", (jobs[0],))
    assert enter(db, jobs[1]) == "half-open"
    assert steps.one(db, FAILED, jobs[1], 2, 3) is None
    open_it(db, jobs[1], seconds=30)
    assert enter(db, jobs[2]) == "open" and breaker(db)["times_opened"] == 2
    [paused] = steps.rows(db, "SELECT paused_until FROM pipeline.rate_limits WHERE name = 'bazaar'")
    assert paused["paused_until"] == breaker(db)["open_until"]


def test_an_operator_closes_it_or_lets_the_next_job_probe(opened: tuple[Db, list[UUID]]) -> None:
    db, jobs = opened
    db.execute("SELECT pipeline.resume_rate_limit('bazaar')")
    assert enter(db, jobs[0]) == "half-open"
    assert steps.one(db, "SELECT pipeline.breaker_close('bazaar')")
    assert enter(db, jobs[1]) == "closed" and not steps.one(db, "SELECT pipeline.breaker_close('bazaar')")


def test_closing_leaves_a_pause_that_others_asked_for(opened: tuple[Db, list[UUID]]) -> None:
    db, _ = opened
    db.execute("SELECT pipeline.pause_rate_limit('bazaar', now() + interval '1 hour', 'retry_after')")
    db.execute("SELECT pipeline.breaker_close('bazaar')")
    assert steps.one(db, "SELECT pipeline.limit_reason('bazaar')") == "retry_after"


def test_a_breaker_that_an_application_holds_keeps_a_worker_for_a_second(
    opened: tuple[Db, list[UUID]], connect: Connect
) -> None:
    db, jobs = opened
    clock.let_pass(db, 301)
    other = connect()
    with other.transaction():
        other.execute("UPDATE pipeline.breakers SET failures = failures")
        with pytest.raises(Exception, match="lock timeout"):
            enter(db, jobs[0])
    assert enter(db, jobs[0]) == "half-open"


def test_verify_ends_a_pause_that_nobody_means(opened: tuple[Db, list[UUID]]) -> None:
    db, _ = opened
    db.execute("UPDATE pipeline.breakers SET open_until = NULL")
    [found] = steps.rows(db, "SELECT * FROM pipeline.verify(true)")
    assert found["problem"] == "rate limit that its breaker does not hold any more"
    assert steps.one(db, "SELECT paused_until FROM pipeline.rate_limits WHERE name = 'bazaar'") is None


def test_the_list_shows_rates_pauses_and_breakers(opened: tuple[Db, list[UUID]]) -> None:
    db, _ = opened
    db.execute("SELECT pipeline.declare_rate_limit('api', 5, 10)")
    rows = steps.rows(db, "SELECT name, rate, pause_reason, breaker, failures FROM pipeline.list_limits('', 2)")
    assert rows == [
        {"name": "api", "rate": 5, "pause_reason": None, "breaker": None, "failures": None},
        {"name": "bazaar", "rate": None, "pause_reason": "breaker", "breaker": "open", "failures": 3},
    ]
