"""pipeline.fail: a permanent error."""

from __future__ import annotations

from tests.db import steps
from tests.db.steps import Db


def test_a_permanent_error_ends_the_job_at_once(database: Db) -> None:
    """One execution, no retry, its error kept; the send number stays, so that a revived dead letter is known."""
    hold = steps.held(database)
    assert steps.fail(database, hold, "not found") == "failed"
    row = steps.job(database, hold.job)
    assert (row["status"], row["attempts"], row["error_message"], row["send"]) == ("failed", 1, "not found", 1)
    assert row["completed_at"] is not None
    assert steps.waiting(database, hold.job) is None
    assert steps.outcomes(database, hold.job) == ["failed"]


def test_a_failed_job_frees_its_processor(database: Db) -> None:
    """The next one has it."""
    hold = steps.held(database, "pooled")
    steps.fail(database, hold)
    assert steps.processor(database, hold.job) is None
    assert steps.processor(database, steps.held(database, "pooled").job) == 1
