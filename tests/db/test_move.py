"""pipeline.move: jobs of a phase that is gone continue in another."""

from __future__ import annotations

from uuid import UUID

import psycopg
import pytest

from tests.db import steps
from tests.db.conftest import Connect
from tests.db.steps import Db, Hold, Row


def move(db: Db, queue: str = "triple.first", phase: str = "second", after: UUID | None = None, most: int = 100) -> Row:
    [row] = steps.rows(db, "SELECT * FROM pipeline.move(%s, %s, %s, %s)", queue, phase, after, most)
    return row


def retire(db: Db, queue: str = "triple.first") -> None:
    db.execute("UPDATE pipeline.phases SET position = 0 WHERE queue = %s", (queue,))


def test_a_waiting_job_continues_in_the_new_phase_with_fresh_budgets(database: Db) -> None:
    """A new send number voids a message that is still out; the gate sends it to its new queue."""
    job = steps.submit(database, "triple")
    steps.admit(database)
    database.execute(
        "UPDATE pipeline.jobs SET attempts = 2, crashes = 1, waits = 5, max_attempts = 9 WHERE id = %s", (job,)
    )
    retire(database)
    answer = move(database)
    assert (answer["moved"], answer["running"], answer["locked"], answer["last"]) == (1, 0, 0, job)
    row = steps.job(database, job)
    assert (row["phase"], row["status"], row["send"]) == ("second", "pending", 2)
    assert (row["attempts"], row["crashes"], row["waits"], row["max_attempts"]) == (0, 0, 0, 3)
    assert [(sent["job_id"], sent["queue"], sent["send"]) for sent in steps.admit(database)] == [
        (job, "triple.second", 2)
    ]


def test_a_job_that_backs_off_keeps_its_due_time(database: Db) -> None:
    """It is sent to the new phase when its time has come."""
    hold = steps.held(database, "triple")
    steps.retry(database, hold, delay=60)
    due = steps.job(database, hold.job)["next_retry_at"]
    retire(database)
    assert move(database)["moved"] == 1
    row, waits = steps.job(database, hold.job), steps.waiting(database, hold.job)
    assert waits is not None
    assert (row["phase"], row["status"], row["next_retry_at"], waits["due_at"]) == ("second", "retryable", due, due)
    assert steps.admit(database) == []


def test_what_runs_stays_with_its_worker_and_is_counted(database: Db) -> None:
    """Its worker completes it under its fence, by the chain that the retired phase had."""
    hold = steps.held(database, "triple")
    retire(database)
    with steps.nothing_changes(database):
        answer = move(database)
    assert (answer["moved"], answer["running"], answer["locked"]) == (0, 1, 0)
    steps.complete(database, hold)
    assert steps.job(database, hold.job)["phase"] == "second"


@pytest.mark.parametrize("table", ["pipeline.jobs WHERE id", "pipeline.outbox WHERE job_id"])
def test_it_waits_for_no_lock_and_counts_what_is_locked(database: Db, connect: Connect, table: str) -> None:
    """An application that holds a row for hours holds up nobody else's job."""
    held, free = steps.submit(database, "triple"), steps.submit(database, "triple")
    retire(database)
    other = connect()
    with other.transaction():
        other.execute(f"SELECT 1 FROM {table} = %s FOR UPDATE", (held,))
        answer = move(database)
    assert (answer["moved"], answer["running"], answer["locked"]) == (1, 0, 1)
    assert (steps.job(database, held)["phase"], steps.job(database, free)["phase"]) == ("first", "second")


def test_it_moves_batch_by_batch_and_ends_with_no_last_id(database: Db) -> None:
    """Jobs that are left do not stop those behind them."""
    running = [steps.held(database, "triple").job for _ in range(3)]
    waiting = [steps.submit(database, "triple") for _ in range(4)]
    retire(database)
    after, moved, left = None, 0, 0
    for _ in range(4):
        answer = move(database, after=after, most=2)
        after, moved, left = answer["last"], moved + answer["moved"], left + answer["running"]
    assert (moved, left, after) == (4, 3, max(running + waiting))
    assert move(database, after=after, most=2)["last"] is None
    assert {steps.job(database, job)["phase"] for job in running} == {"first"}


def test_jobs_of_a_phase_that_left_no_row_are_moved_too(database: Db) -> None:
    """The name is enough."""
    job = steps.submit(database, "triple")
    database.execute("UPDATE pipeline.jobs SET phase = 'zeroth' WHERE id = %s", (job,))
    assert move(database, "triple.zeroth", "first")["moved"] == 1
    assert steps.claim(database, job)["verdict"] == "claimed"


@pytest.mark.parametrize(
    ("queue", "phase", "says"),
    [
        ("triple.first", "second", "triple.first is a phase of its workflow"),
        ("triple.gone", "fourth", "workflow triple has no phase fourth"),
        ("nothing.gone", "first", "workflow nothing has no phase first"),
    ],
)
def test_it_refuses_to_skip_a_phase_and_to_move_into_nowhere(database: Db, queue: str, phase: str, says: str) -> None:
    """A job of a phase that the chain has would miss its work."""
    steps.submit(database, "triple")
    with steps.nothing_changes(database), pytest.raises(psycopg.Error, match=says):
        move(database, queue, phase)


def test_an_old_holder_cannot_complete_what_was_moved(database: Db) -> None:
    """Its claim ended before the move; a fence of then changes nothing."""
    hold = steps.held(database, "triple")
    steps.snooze(database, hold)
    retire(database)
    move(database)
    with steps.nothing_changes(database):
        assert steps.complete(database, Hold(hold.job, hold.fence))["verdict"] == "lost"
