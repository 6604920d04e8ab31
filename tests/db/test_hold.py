"""pipeline.hold: a checkpoint is as fenced as a transition."""

from __future__ import annotations

import psycopg
import pytest

from tests.db import steps
from tests.db.conftest import Connect
from tests.db.steps import Db, Hold


def holds(db: Db, hold: Hold) -> bool:
    return bool(steps.one(db, "SELECT pipeline.hold(%s, %s)", hold.job, hold.fence))


def test_only_the_present_fence_of_a_running_job_holds(database: Db) -> None:
    """Not an older or a newer one, nor after the end."""
    hold = steps.held(database)
    assert holds(database, hold)
    assert not any(holds(database, wrong) for wrong in steps.wrong_fences(hold))
    steps.complete(database, hold)
    assert not holds(database, hold)


def test_a_cancel_waits_until_the_checkpoint_is_written(database: Db, connect: Connect) -> None:
    """So that a cancelled job keeps no checkpoint that was written after the cancel."""
    hold = steps.held(database)
    other = connect()
    with database.transaction():
        assert holds(database, hold)
        other.execute("SET lock_timeout = '200ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            steps.cancel(other, hold.job)
    assert steps.cancel(other, hold.job)
