"""pipeline.retry: an application error."""

from __future__ import annotations

from tests.db import clock, steps
from tests.db.steps import Db, Hold


def test_an_error_costs_one_attempt_and_backs_off(database: Db) -> None:
    """Retryable, with a time, a new send number and its error."""
    hold = steps.held(database)
    assert steps.retry(database, hold, delay=30, error="away") == "retried"
    row, waits = steps.job(database, hold.job), steps.waiting(database, hold.job)
    assert (row["status"], row["attempts"], row["crashes"], row["send"]) == ("retryable", 1, 0, 2)
    assert (row["error_message"], row["wait_reason"]) == ("away", "backoff")
    assert (row["next_retry_at"] - row["updated_at"]).total_seconds() == 30
    assert waits is not None
    assert waits["due_at"] == row["next_retry_at"]
    assert steps.outcomes(database, hold.job) == ["retried"]


def test_it_is_sent_again_only_when_its_time_has_come(database: Db) -> None:
    """Due times are compared in SQL."""
    hold = steps.held(database)
    steps.retry(database, hold, delay=30)
    assert steps.admit(database) == []
    clock.let_pass(database, 31)
    [sent] = steps.admit(database)
    assert (sent["job_id"], sent["send"], sent["attempt"]) == (hold.job, 2, 2)


def test_the_last_attempt_fails_the_job(database: Db) -> None:
    """Three executions by default; each is in the history with its error."""
    job_id = steps.submit(database)
    verdicts = [steps.retry(database, steps.hold(database, job_id), error=f"try {n}") for n in (1, 2, 3)]
    row = steps.job(database, job_id)
    assert verdicts == ["retried", "retried", "exhausted"]
    assert (row["status"], row["attempts"], row["error_message"]) == ("failed", 3, "try 3")
    assert steps.waiting(database, job_id) is None
    assert [(one["attempt"], one["error"]) for one in steps.history(database, job_id)] == [
        (1, "try 1"),
        (2, "try 2"),
        (3, "try 3"),
    ]


def test_a_repeated_call_answers_the_same_and_counts_once(database: Db) -> None:
    """After an unknown COMMIT; also the one that used up the budget."""
    job_id = steps.submit(database)
    for verdict in ("retried", "retried", "exhausted"):
        hold = steps.hold(database, job_id)
        assert steps.retry(database, hold) == verdict
        with steps.nothing_changes(database):
            assert steps.retry(database, hold) == verdict


def test_a_job_that_does_not_run_cannot_be_retried(database: Db) -> None:
    """Not before its claim, not after its end."""
    done, waits = steps.held(database), Hold(steps.submit(database), 0)
    steps.complete(database, done)
    with steps.nothing_changes(database):
        assert steps.retry(database, waits) == "lost"
        assert steps.retry(database, done) == "succeeded"


def test_a_long_error_is_cut(database: Db) -> None:
    """G8: history is bounded."""
    hold = steps.held(database)
    steps.retry(database, hold, error="x" * 100_000)
    assert len(steps.job(database, hold.job)["error_message"]) == 20_000
    assert len(steps.history(database, hold.job)[0]["error"]) == 20_000
