"""pipeline.reserve: the dispatch throttle. The workflow 'paced' sends two every half second."""

from __future__ import annotations

from tests.db import clock, steps
from tests.db.steps import Db

STEP = 0.5


def test_each_waiting_job_gets_its_place_in_time_once(database: Db) -> None:
    """Two now, two in half a second, two in a second … and nobody wakes before."""
    jobs = [steps.submit(database, "paced") for _ in range(7)]
    assert [row["job_id"] for row in steps.admit(database)] == jobs[:2]
    due = steps.rows(database, "SELECT due_at FROM pipeline.outbox WHERE sent_at IS NULL ORDER BY seq")
    first = due[0]["due_at"]
    assert [(row["due_at"] - first).total_seconds() for row in due] == [0, 0, STEP, STEP, 2 * STEP]
    with steps.nothing_changes(database):
        assert steps.admit(database) == []


def test_they_are_sent_in_order(database: Db) -> None:
    """Two for each step of time."""
    jobs = [steps.submit(database, "paced") for _ in range(6)]
    sent = []
    for _ in range(3):
        sent.append([row["job_id"] for row in steps.admit(database)])
        clock.let_pass(database, STEP)
    assert sent == [jobs[:2], jobs[2:4], jobs[4:]]


def test_late_comers_queue_behind_the_reserved(database: Db) -> None:
    """However they arrive, a window never sends more than its count."""
    for _ in range(3):
        steps.submit(database, "paced")
    steps.admit(database)
    late = [steps.submit(database, "paced") for _ in range(2)]
    assert steps.admit(database) == []
    clock.let_pass(database, STEP)
    assert [row["job_id"] for row in steps.admit(database)][1:] == late[:1]
    clock.let_pass(database, STEP)
    assert [row["job_id"] for row in steps.admit(database)] == late[1:]


def test_an_idle_hour_saves_up_nothing(database: Db) -> None:
    """After a pause the throttle starts afresh, with one window's count."""
    steps.submit(database, "paced")
    steps.admit(database)
    clock.let_pass(database, 3600)
    jobs = [steps.submit(database, "paced") for _ in range(5)]
    assert [row["job_id"] for row in steps.admit(database)] == jobs[:2]


def test_a_higher_priority_gets_the_earlier_place(database: Db) -> None:
    """Among those that have none yet."""
    steps.submit(database, "paced")
    low, high = steps.submit(database, "paced"), steps.submit(database, "paced", priority=9)
    sent = [row["job_id"] for row in steps.admit(database)]
    assert sent[0] == high
    assert low not in sent


def test_a_phase_without_a_throttle_is_not_touched(database: Db) -> None:
    """Its jobs go at once."""
    steps.submit(database)
    database.execute("SELECT pipeline.reserve()")
    assert steps.one(database, "SELECT reserved OR due_at IS NOT NULL FROM pipeline.outbox") is False


def test_a_throttled_phase_where_nobody_waits_is_left_alone(database: Db) -> None:
    """There may be hundreds: each look at the gate would write a lock into every one of their rows."""
    steps.rows(database, "SELECT pipeline.reserve()")
    assert steps.one(database, "SELECT count(*) FROM pipeline.phases WHERE queue = 'paced.slowly' AND xmax <> 0") == 0
