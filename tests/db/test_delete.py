"""pipeline.delete: jobs vanish with all that belongs to them."""

from __future__ import annotations

from uuid import UUID

from tests.db import steps
from tests.db.steps import Db
from tests.db.test_keep_steps import keep_steps


def delete(db: Db, *jobs: UUID) -> int:
    return int(steps.one(db, "SELECT pipeline.delete(%s::uuid[])", list(jobs)))


def test_nothing_is_left_of_them_whatever_they_were_doing(database: Db) -> None:
    """Waiting, running, finished: no row in any table; the neighbour stays."""
    stays, waits = steps.submit(database, due=steps.FUTURE), steps.submit(database, due=steps.FUTURE)
    runs, done = steps.held(database), steps.held(database)
    keep_steps(database, (runs, "fetch", "1"), (done, "fetch", "1"))
    steps.complete(database, done)
    assert delete(database, waits, runs.job, done.job) == 3
    found = steps.everything(database)
    assert [row["id"] for row in found["jobs"]] == [stays]
    assert [row["job_id"] for row in found["outbox"]] == [stays]
    assert found["attempts"] == []
    assert found["steps"] == []


def test_the_running_attempt_learns_that_it_lost(database: Db) -> None:
    """Its completion changes nothing, and its heartbeat says why."""
    hold = steps.held(database)
    delete(database, hold.job)
    assert steps.complete(database, hold)["verdict"] == "lost"
    assert steps.retry(database, hold) == "lost"


def test_a_batch_counts_the_deleted_as_ended(database: Db) -> None:
    """The callback comes when the last one is gone, once."""
    batch = steps.open_batch(database, "plain")
    hold, other = steps.held(database, batch=batch), steps.held(database, batch=batch)
    steps.seal(database, batch)
    steps.complete(database, other)
    assert steps.batch(database, batch)["remaining"] == 1
    delete(database, hold.job, other.job)
    row = steps.batch(database, batch)
    assert (row["remaining"], row["failed"], row["completed_at"] is not None) == (0, 1, True)
    assert steps.one(database, "SELECT count(*) FROM pipeline.jobs WHERE workflow = 'plain'") == 1


def test_a_continued_job_can_be_deleted(database: Db) -> None:
    """What a lease consists of is given up in one place, by the cancel that comes first."""
    hold = steps.held(database, "plain")
    assert steps.complete(database, hold, continuing="plain.beta")["verdict"] == "continued"
    assert steps.one(database, "SELECT pipeline.delete(%s::uuid[])", [hold.job]) == 1
    assert steps.rows(database, "SELECT * FROM pipeline.outbox") == []
