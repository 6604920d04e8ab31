"""The dispatch throttle. The workflow 'paced' sends two every half second."""

from __future__ import annotations

import pytest

from tests.db import clock, steps
from tests.db.steps import Db

STEP = 0.5


def next_due(db: Db) -> float | None:
    [row] = steps.rows(db, "SELECT seconds FROM pipeline.next_due()")
    return None if row["seconds"] is None else float(row["seconds"])


def test_they_are_sent_in_order_and_nobody_wakes_before(database: Db) -> None:
    """Two for each step of time."""
    jobs = [steps.submit(database, "paced") for _ in range(6)]
    sent = []
    for _ in range(3):
        sent.append([row["job_id"] for row in steps.admit(database)])
        with steps.nothing_changes(database):
            assert steps.admit(database) == []
        clock.let_pass(database, STEP)
    assert sent == [jobs[:2], jobs[2:4], jobs[4:]]


def test_the_gate_knows_when_to_look_again(database: Db) -> None:
    for _ in range(3):
        steps.submit(database, "paced")
    steps.admit(database)
    assert next_due(database) == pytest.approx(STEP, abs=0.1)
    clock.let_pass(database, STEP)
    steps.admit(database)
    assert next_due(database) is None


def test_late_comers_queue_behind_those_that_wait(database: Db) -> None:
    """However they arrive, a window never sends more than its count."""
    early = [steps.submit(database, "paced") for _ in range(3)]
    steps.admit(database)
    late = [steps.submit(database, "paced") for _ in range(2)]
    assert steps.admit(database) == []
    clock.let_pass(database, STEP)
    assert [row["job_id"] for row in steps.admit(database)] == [early[2], late[0]]
    clock.let_pass(database, STEP)
    assert [row["job_id"] for row in steps.admit(database)] == late[1:]


def test_what_arrives_one_by_one_shares_the_window(database: Db) -> None:
    sent = []
    for _ in range(3):
        steps.submit(database, "paced")
        sent.append(len(steps.admit(database)))
    assert sent == [1, 1, 0]


@pytest.mark.parametrize("waiting", [0, 5], ids=["idle", "stalled"])
def test_an_hour_without_a_relay_saves_up_nothing(database: Db, waiting: int) -> None:
    """After it the throttle starts afresh, with one window's count, whoever has waited since."""
    steps.submit(database, "paced")
    jobs = [steps.submit(database, "paced") for _ in range(waiting)]
    steps.admit(database)
    clock.let_pass(database, 3600)
    jobs += [steps.submit(database, "paced") for _ in range(5)]
    before = 2 if waiting else 1
    assert [row["job_id"] for row in steps.admit(database)] == jobs[before - 1 :][:2]
    assert steps.admit(database) == []


def test_a_higher_priority_goes_first(database: Db) -> None:
    steps.submit(database, "paced")
    low, high = steps.submit(database, "paced"), steps.submit(database, "paced", priority=9)
    sent = [row["job_id"] for row in steps.admit(database)]
    assert sent[0] == high
    assert low not in sent


def test_a_phase_without_a_throttle_and_one_where_nobody_waits_are_not_touched(database: Db) -> None:
    """There may be hundreds: each look at the gate would write a lock into every one of their rows."""
    steps.submit(database)
    assert len(steps.admit(database)) == 1
    assert steps.one(database, "SELECT count(*) FROM pipeline.phases WHERE xmax <> 0 OR throttle_from IS NOT NULL") == 0
