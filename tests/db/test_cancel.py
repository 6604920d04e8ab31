"""cancel."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.db import steps
from tests.db.steps import Db


@pytest.mark.parametrize("status", ["pending", "sent", "retryable", "running"])
def test_any_job_that_has_not_ended_can_be_cancelled(database: Db, status: str) -> None:
    """It is final, holds nothing, waits for nothing, and its history says so."""
    job_id = steps.submit(database)
    if status == "sent":
        steps.admit(database)
    if status in ("retryable", "running"):
        hold = steps.hold(database, job_id)
        if status == "retryable":
            steps.retry(database, hold, delay=60)
    fence = steps.job(database, job_id)["fence"]
    assert steps.cancel(database, job_id) is True
    row = steps.job(database, job_id)
    assert (row["status"], row["error_message"], row["locked_by"]) == ("cancelled", "cancelled by request", None)
    assert row["fence"] >= fence
    assert steps.waiting(database, job_id) is None
    assert steps.outcomes(database, job_id)[-1] == "cancelled"
    assert steps.admit(database) == []


def test_nothing_of_a_cancelled_attempt_is_kept(database: Db) -> None:
    """G5: its fence opens nothing any more."""
    hold = steps.held(database)
    steps.cancel(database, hold.job)
    with steps.nothing_changes(database):
        assert steps.complete(database, hold, {"n": 1})["verdict"] == "lost"
        for step in (steps.retry, steps.fail, steps.snooze, steps.crash):
            assert step(database, hold) == "cancelled"
        assert steps.take_over(database, hold) == "changed"


def test_a_job_that_has_ended_cannot_be_cancelled(database: Db) -> None:
    """Nor twice, nor one that does not exist."""
    done, bad, gone = steps.held(database), steps.held(database), steps.submit(database)
    steps.complete(database, done)
    steps.fail(database, bad)
    steps.cancel(database, gone)
    with steps.nothing_changes(database):
        assert not any(steps.cancel(database, job_id) for job_id in (done.job, bad.job, gone, uuid4()))


def test_a_cancelled_job_frees_its_processor(database: Db) -> None:
    """The next one has it."""
    hold = steps.held(database, "pooled")
    steps.cancel(database, hold.job)
    assert steps.processor(database, steps.held(database, "pooled").job) == 1
