"""pipeline.crash: an attempt that ended without an answer."""

from __future__ import annotations

from tests.db import steps
from tests.db.steps import Db


def test_a_crash_costs_one_of_its_own_budget_and_the_job_waits_again(database: Db) -> None:
    """Attempts are untouched; it goes out at once, and runs isolated from now on."""
    hold = steps.held(database)
    assert steps.crash(database, hold) == "crashed"
    row = steps.job(database, hold.job)
    assert (row["status"], row["attempts"], row["crashes"], row["send"]) == ("pending", 0, 1, 2)
    steps.admit(database)
    assert steps.claim(database, hold.job)["isolated"] is True


def test_the_third_crash_makes_a_poison_pill(database: Db) -> None:
    """Failed, with the signal or limit as the reason."""
    job_id = steps.submit(database)
    verdicts = [steps.crash(database, steps.hold(database, job_id)) for _ in range(3)]
    row = steps.job(database, job_id)
    assert verdicts == ["crashed", "crashed", "poisoned"]
    assert (row["status"], row["crashes"], row["attempts"]) == ("failed", 3, 0)
    assert row["error_message"] == "poison pill after 3 crashes: signal 9"
    assert steps.outcomes(database, job_id) == verdicts


def test_a_crash_that_is_not_the_jobs_fault_is_free(database: Db) -> None:
    """Any number of them."""
    job_id = steps.submit(database)
    assert {steps.crash(database, steps.hold(database, job_id), counts=False) for _ in range(5)} == {"crashed"}
    assert steps.job(database, job_id)["crashes"] == 0


def test_a_hand_over_gives_the_next_phase_a_fresh_budget(database: Db) -> None:
    """Budgets are per phase."""
    hold = steps.held(database, "triple")
    steps.crash(database, hold)
    steps.complete(database, steps.hold(database, hold.job))
    assert steps.job(database, hold.job)["crashes"] == 0
