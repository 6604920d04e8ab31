"""pipeline_pause_lane, pipeline_open_lane: jobs of a sick or busy outside system wait at the gate."""

from __future__ import annotations

from tests.db import clock, steps
from tests.db.steps import Db


def pause(db: Db, seconds: float, reason: str = "breaker") -> None:
    db.execute("SELECT pipeline_pause_lane('ebay', now() + make_interval(secs => %s), %s)", (seconds, reason))


def test_only_the_jobs_of_the_paused_lane_wait(database: Db) -> None:
    """The others pass as if they were alone."""
    sick, well, none = (steps.submit(database, lane=lane) for lane in ("ebay", "ma-shops", None))
    pause(database, 60)
    assert [row["job_id"] for row in steps.admit(database)] == [well, none]
    row = steps.waiting(database, sick)
    assert row is not None
    assert row["reason"] == "breaker"
    with steps.nothing_changes(database):
        assert steps.admit(database) == []


def test_they_go_when_the_pause_is_over(database: Db) -> None:
    """Nobody has to open the lane."""
    sick = steps.submit(database, lane="ebay")
    pause(database, 60)
    steps.admit(database)
    clock.let_pass(database, 61)
    assert [row["job_id"] for row in steps.admit(database)] == [sick]


def test_a_longer_pause_stands_and_a_shorter_one_changes_nothing(database: Db) -> None:
    """Two workers heard two Retry-After."""
    pause(database, 60, "retry_after")
    pause(database, 5)
    assert steps.one(database, "SELECT pause_reason FROM lanes WHERE name = 'ebay'") == "retry_after"
    pause(database, 90)
    assert steps.one(database, "SELECT pause_reason FROM lanes WHERE name = 'ebay'") == "breaker"


def test_an_opened_lane_lets_its_jobs_out_gradually(database: Db) -> None:
    """At the lane's rate, oldest first; a wait of another kind is left alone."""
    jobs = [steps.submit(database, lane="ebay") for _ in range(4)]
    scheduled = steps.submit(database, lane="ebay", due=steps.FUTURE)
    database.execute("SELECT pipeline_set_lane('ebay', 2, 1)")
    pause(database, 600)
    assert steps.admit(database) == []
    database.execute("SELECT pipeline_open_lane('ebay')")
    for job in jobs:
        assert [row["job_id"] for row in steps.admit(database)] == [job]
        assert steps.admit(database) == [], "nobody has claimed it yet"
        steps.claim(database, job)
        assert steps.one(database, "SELECT granted FROM pipeline_turn('ebay', %s, 1, 0.25)", job) == 1
        assert steps.admit(database) == [], "the next turn is half a second away"
        clock.let_pass(database, 0.5)
    assert steps.waiting(database, scheduled) is not None


def test_a_job_that_comes_back_to_wait_is_still_in_its_lane(database: Db) -> None:
    """After a retry or a park the pause holds it as before."""
    hold = steps.held(database, lane="ebay")
    steps.park(database, hold)
    pause(database, 60)
    assert steps.admit(database) == []


def test_the_next_phase_is_in_no_lane(database: Db) -> None:
    """The lane was the first phase's outside system."""
    hold = steps.held(database, "triple", lane="ebay")
    steps.complete(database, hold)
    row = steps.waiting(database, hold.job)
    assert row is not None
    assert (row["lane"], steps.job(database, hold.job)["lane"]) == (None, None)
