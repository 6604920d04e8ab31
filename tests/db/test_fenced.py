"""What the four ways to end an attempt without success have in common."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.db import steps
from tests.db.steps import Db, Hold

End = Callable[[Db, Hold], str]
every_end = pytest.mark.parametrize(
    ("end", "verdict"),
    [(steps.crash, "crashed"), (steps.fail, "failed"), (steps.retry, "retried"), (steps.snooze, "snoozed")],
)


@every_end
def test_a_wrong_fence_changes_nothing(database: Db, end: End, verdict: str) -> None:
    """G2: symmetric for success and failure."""
    hold = steps.held(database)
    for wrong in steps.wrong_fences(hold):
        with steps.nothing_changes(database):
            assert end(database, wrong) == "lost"
    assert end(database, hold) == verdict


@every_end
def test_a_repeated_call_answers_the_same_and_counts_once(database: Db, end: End, verdict: str) -> None:
    """After an unknown COMMIT."""
    hold = steps.held(database)
    end(database, hold)
    with steps.nothing_changes(database):
        assert end(database, hold) == verdict


@every_end
def test_a_job_that_waits_has_no_attempt_to_end(database: Db, end: End, verdict: str) -> None:
    """Only a running attempt can."""
    hold = Hold(steps.submit(database), 0)
    with steps.nothing_changes(database):
        assert end(database, hold) == "lost" != verdict
