"""pipeline.pause_rate_limit, pipeline.resume_rate_limit: jobs of a sick or busy outside system wait at the gate."""

from __future__ import annotations

from tests.db import clock, steps
from tests.db.steps import Db


def pause(db: Db, seconds: float, reason: str = "breaker") -> None:
    db.execute("SELECT pipeline.pause_rate_limit('ebay', now() + make_interval(secs => %s), %s)", (seconds, reason))


def test_only_the_jobs_of_the_paused_rate_limit_wait(database: Db) -> None:
    """The others pass as if they were alone."""
    sick, well, none = (steps.submit(database, rate_limit=rate_limit) for rate_limit in ("ebay", "ma-shops", None))
    pause(database, 60)
    assert [row["job_id"] for row in steps.admit(database)] == [well, none]
    row = steps.waiting(database, sick)
    assert row is not None
    assert row["reason"] == "breaker"
    with steps.nothing_changes(database):
        assert steps.admit(database) == []


def test_they_go_when_the_pause_is_over(database: Db) -> None:
    """Nobody has to open the rate_limit."""
    sick = steps.submit(database, rate_limit="ebay")
    pause(database, 60)
    steps.admit(database)
    clock.let_pass(database, 61)
    assert [row["job_id"] for row in steps.admit(database)] == [sick]


def test_a_longer_pause_stands_and_a_shorter_one_changes_nothing(database: Db) -> None:
    """Two workers heard two Retry-After."""
    pause(database, 60, "retry_after")
    pause(database, 5)
    assert steps.one(database, "SELECT pause_reason FROM pipeline.rate_limits WHERE name = 'ebay'") == "retry_after"
    pause(database, 90)
    assert steps.one(database, "SELECT pause_reason FROM pipeline.rate_limits WHERE name = 'ebay'") == "breaker"


def test_an_opened_rate_limit_lets_its_jobs_out_gradually(database: Db) -> None:
    """At the rate limit's rate, oldest first; a wait of another kind is left alone."""
    jobs = [steps.submit(database, rate_limit="ebay") for _ in range(4)]
    scheduled = steps.submit(database, rate_limit="ebay", due=steps.FUTURE)
    database.execute("SELECT pipeline.set_rate_limit('ebay', 2, 1)")
    pause(database, 600)
    assert steps.admit(database) == []
    database.execute("SELECT pipeline.resume_rate_limit('ebay')")
    for job in jobs:
        assert [row["job_id"] for row in steps.admit(database)] == [job]
        assert steps.admit(database) == [], "nobody has claimed it yet"
        steps.claim(database, job)
        assert steps.one(database, "SELECT granted FROM pipeline.take_permits('ebay', %s, 1, 0.25)", job) == 1
        assert steps.admit(database) == [], "the next permit is half a second away"
        clock.let_pass(database, 0.5)
    assert steps.waiting(database, scheduled) is not None


def test_a_job_that_comes_back_to_wait_is_still_in_its_rate_limit(database: Db) -> None:
    """After a retry or a snooze the pause holds it as before."""
    hold = steps.held(database, rate_limit="ebay")
    steps.snooze(database, hold)
    pause(database, 60)
    assert steps.admit(database) == []


def test_the_next_phase_is_in_no_rate_limit(database: Db) -> None:
    """The rate limit was the first phase's outside system."""
    hold = steps.held(database, "triple", rate_limit="ebay")
    steps.complete(database, hold)
    row = steps.waiting(database, hold.job)
    assert row is not None
    assert (row["rate_limit"], steps.job(database, hold.job)["rate_limit"]) == (None, None)
