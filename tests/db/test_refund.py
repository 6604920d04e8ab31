"""pipeline.refund: failures that were the outside system's fault cost the jobs nothing."""

from __future__ import annotations

from tests.db import clock, steps
from tests.db.conftest import Connect
from tests.db.steps import Db


def refund(db: Db, *jobs: object) -> int:
    return int(steps.one(db, "SELECT pipeline.refund(%s::uuid[])", list(jobs)))


def test_one_execution_is_given_back_for_each_time_a_job_is_named(database: Db) -> None:
    """And never more than were spent."""
    once, twice = steps.held(database), steps.held(database)
    steps.retry(database, once)
    steps.retry(database, twice)
    assert refund(database, once.job, twice.job, twice.job) == 2
    assert [steps.job(database, h.job)["attempts"] for h in (once, twice)] == [0, 0]


def test_a_job_that_failed_for_good_by_it_starts_again(database: Db) -> None:
    """With all of its budget."""
    hold = steps.held(database)
    while steps.retry(database, hold) == "retried":
        clock.let_pass(database, 1)
        hold = steps.hold(database, hold.job)
    refund(database, hold.job)
    row = steps.job(database, hold.job)
    assert (row["status"], row["attempts"]) == ("pending", 0)
    assert steps.waiting(database, hold.job) is not None


def test_other_ends_stay(database: Db) -> None:
    """A permanent error, a success and a cancel were not the outside system's doing."""
    bad, done, gone = (steps.held(database) for _ in range(3))
    steps.fail(database, bad)
    steps.complete(database, done)
    steps.cancel(database, gone.job)
    with steps.nothing_changes(database):
        assert refund(database, bad.job, done.job, gone.job) == 0


def test_a_job_that_another_transaction_holds_is_left_out(database: Db, connect: Connect) -> None:
    """F3: whoever refunds does not wait for it."""
    held, free, application = steps.held(database), steps.held(database), connect()
    for hold in (held, free):
        steps.retry(database, hold)
    database.execute("SET lock_timeout = '100ms'")
    with application.transaction():
        application.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (held.job,))
        assert refund(database, held.job, free.job) == 1
    assert [steps.job(database, hold.job)["attempts"] for hold in (held, free)] == [1, 0]
