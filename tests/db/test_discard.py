"""pipeline.discard: a failed job is put away for good."""

from __future__ import annotations

from uuid import uuid4

from tests.db import steps
from tests.db.steps import Db


def test_a_failed_job_is_put_away_with_its_history(database: Db) -> None:
    """It is cancelled with both reasons, and no dead letter can revive it any more."""
    hold = steps.held(database)
    steps.fail(database, hold)
    assert steps.discard(database, hold.job) is True
    row = steps.job(database, hold.job)
    assert (row["status"], row["fence"], row["send"]) == ("cancelled", hold.fence, 2)
    assert row["error_message"] == "given up (was: not found)"
    assert steps.outcomes(database, hold.job) == ["failed"]
    with steps.nothing_changes(database):
        assert steps.replay(database, hold.job, 1) is False
        assert steps.discard(database, hold.job) is False


def test_a_job_that_has_not_failed_is_not_touched(database: Db) -> None:
    """Waiting, running, succeeded, unknown: cancel is for those that can still be."""
    waits, runs, done = steps.submit(database, due=steps.FUTURE), steps.held(database), steps.held(database)
    steps.complete(database, done)
    with steps.nothing_changes(database):
        assert not any(steps.discard(database, job_id) for job_id in (waits, runs.job, done.job, uuid4()))


def test_a_child_counts_once_when_it_fails_and_not_again(database: Db) -> None:
    """Its batch has heard of its end."""
    batch = steps.open_batch(database, "plain")
    hold = steps.held(database, batch=batch)
    steps.seal(database, batch)
    steps.fail(database, hold)
    steps.discard(database, hold.job)
    assert steps.batch(database, batch)["remaining"] == 0
    assert steps.one(database, "SELECT count(*) FROM pipeline.jobs WHERE workflow = 'plain'") == 1
