"""pipeline.reset: an operator takes a running job from its holder."""

from __future__ import annotations

from uuid import uuid4

from tests.db import steps
from tests.db.steps import Db


def reset(db: Db, job: object) -> str:
    return str(steps.one(db, "SELECT pipeline.reset(%s, 'stuck, said the operator')", job))


def test_a_running_job_waits_again_and_its_holder_has_lost(database: Db) -> None:
    """No budget is spent."""
    hold = steps.held(database)
    assert reset(database, hold.job) == "reset"
    row = steps.job(database, hold.job)
    assert (row["status"], row["attempts"], row["crashes"], row["locked_by"]) == ("pending", 0, 0, None)
    assert steps.complete(database, hold)["verdict"] == "lost"
    assert steps.hold(database, hold.job, "w2").fence == hold.fence + 1


def test_another_job_is_left_alone_and_its_state_is_the_answer(database: Db) -> None:
    """Nothing to take from nobody."""
    waits = steps.submit(database)
    with steps.nothing_changes(database):
        assert (reset(database, waits), reset(database, uuid4())) == ("pending", "unknown_job")
