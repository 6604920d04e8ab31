"""pipeline_park: waiting at no cost, and handing back."""

from __future__ import annotations

import pytest

from tests.db import steps
from tests.db.steps import Db, Hold


def test_a_parked_job_waits_and_pays_nothing(database: Db) -> None:
    """G6: no attempt, no crash; a new send number, a time, a reason."""
    hold = steps.held(database)
    assert steps.park(database, hold, delay=60) == "parked"
    row, waits = steps.job(database, hold.job), steps.waiting(database, hold.job)
    assert (row["status"], row["attempts"], row["crashes"], row["send"]) == ("pending", 0, 0, 2)
    assert (row["wait_reason"], row["error_message"]) == ("rate_limit", None)
    assert waits is not None
    assert (waits["due_at"], waits["reason"]) == (row["next_retry_at"], "rate_limit")
    assert steps.admit(database) == []


def test_a_job_handed_back_at_shutdown_goes_out_again_at_once(database: Db) -> None:
    """A deploy costs no budget and no time."""
    hold = steps.held(database)
    assert steps.park(database, hold, outcome="handed_back", reason="shutdown") == "handed_back"
    assert [row["job_id"] for row in steps.admit(database)] == [hold.job]


@pytest.mark.parametrize("times", [20])
def test_any_number_of_waits_costs_nothing(database: Db, times: int) -> None:
    """Each is in the history under a fence of its own."""
    job_id = steps.submit(database)
    for _ in range(times):
        steps.park(database, steps.hold(database, job_id))
    row = steps.job(database, job_id)
    assert (row["status"], row["attempts"], row["crashes"], row["fence"]) == ("pending", 0, 0, times)
    assert steps.outcomes(database, job_id) == ["parked"] * times


def test_parking_keeps_the_last_error(database: Db) -> None:
    """A wait after an error does not wipe what went wrong before."""
    hold = steps.held(database)
    steps.retry(database, hold, error="away")
    steps.park(database, steps.hold(database, hold.job))
    assert steps.job(database, hold.job)["error_message"] == "away"


def test_a_wrong_fence_changes_nothing(database: Db) -> None:
    """G2."""
    hold = steps.held(database)
    for wrong in steps.wrong_fences(hold):
        with steps.nothing_changes(database):
            assert steps.park(database, wrong) == "lost"


def test_a_repeated_call_answers_the_same(database: Db) -> None:
    """After an unknown COMMIT."""
    hold = steps.held(database)
    steps.park(database, hold, delay=5)
    with steps.nothing_changes(database):
        assert steps.park(database, hold, delay=5) == "parked"


def test_a_job_that_waits_cannot_be_parked(database: Db) -> None:
    """Only a running attempt can."""
    hold = Hold(steps.submit(database), 0)
    with steps.nothing_changes(database):
        assert steps.park(database, hold) == "lost"
