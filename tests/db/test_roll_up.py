"""pipeline.roll_up: what each phase had to do, minute by minute."""

from __future__ import annotations

from tests.db import steps
from tests.db.steps import Db

# The most that the charts could show of a minute before: 8,333 phases a second.
OLD_LIMIT = 500_000


def test_a_busy_minute_is_counted_in_full(database: Db) -> None:
    """F25: however many attempts ended in it."""
    job = steps.held(database).job
    # One transaction, one now(): the rows take seconds to write, and the minute may end meanwhile.
    with database.transaction():
        database.execute(
            "INSERT INTO pipeline.attempts (job_id, fence, attempt, ready_at, finished_at, phase, outcome)"
            " SELECT %s, g + 10, 1, now(), date_trunc('minute', now() - interval '10 seconds') - interval '1 second', 'act',"
            " 'succeeded' FROM generate_series(1, %s) g",
            (job, OLD_LIMIT + 100),
        )
        assert steps.one(database, "SELECT pipeline.roll_up()") is True
        assert steps.one(database, "SELECT sum(succeeded) FROM pipeline.rollups") == OLD_LIMIT + 100
        assert steps.one(database, "SELECT sum(succeeded) FROM pipeline.rollup_quarters") == OLD_LIMIT + 100
        assert steps.one(database, "SELECT pipeline.roll_up()") is False, "a minute is counted once"
