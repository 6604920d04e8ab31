"""pipeline.undeliverable: RabbitMQ gave the message up."""

from __future__ import annotations

from tests.db import steps
from tests.db.steps import Db


def test_a_job_whose_message_was_given_up_fails_with_the_reason(database: Db) -> None:
    """Under a fence of its own, so that the history has room for it."""
    job_id = steps.submit(database)
    steps.admit(database)
    assert steps.undeliverable(database, job_id, 1) is True
    row = steps.job(database, job_id)
    assert (row["status"], row["error_message"], row["fence"], row["attempts"]) == ("failed", "delivery limit", 1, 0)
    assert steps.waiting(database, job_id) is None
    assert steps.outcomes(database, job_id) == ["undeliverable"]


def test_a_retryable_job_fails_too(database: Db) -> None:
    """Its earlier errors stay in the history."""
    hold = steps.held(database)
    steps.retry(database, hold)
    steps.admit(database)
    assert steps.undeliverable(database, hold.job, 2) is True
    assert steps.outcomes(database, hold.job) == ["retried", "undeliverable"]


def test_an_older_message_hurts_nobody(database: Db) -> None:
    """The job waits on another send."""
    job_id = steps.submit(database)
    with steps.nothing_changes(database):
        assert steps.undeliverable(database, job_id, 0) is False
        assert steps.undeliverable(database, job_id, 2) is False


def test_a_job_that_runs_or_has_ended_is_not_touched(database: Db) -> None:
    """Nor a second time."""
    runs, done, gone = steps.held(database), steps.held(database), steps.submit(database)
    steps.complete(database, done)
    steps.undeliverable(database, gone, 1)
    with steps.nothing_changes(database):
        for job_id in (runs.job, done.job, gone):
            assert steps.undeliverable(database, job_id, steps.job(database, job_id)["send"]) is False


def test_it_can_be_replayed(database: Db) -> None:
    """Failed is failed."""
    job_id = steps.submit(database)
    steps.undeliverable(database, job_id, 1)
    assert steps.replay(database, job_id, 1) is True
    assert steps.hold(database, job_id).fence == 2
