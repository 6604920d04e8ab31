"""pipeline.roll_up: what each phase had to do, minute by minute."""

from __future__ import annotations

from pipeline.front.api.workflows.history import percentile
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


def test_durations_of_phases_and_of_whole_jobs_are_kept_for_charts(database: Db) -> None:
    """In buckets that are added up; a median read from them is within half of the true one."""
    for _ in range(3):
        steps.complete(database, steps.held(database, "single"))
    late = "SELECT date_trunc('minute', now() - interval '10 seconds') - interval '1 second'"
    with database.transaction():
        database.execute(
            f"UPDATE pipeline.attempts SET finished_at = ({late}), started_at = ({late}) - interval '2 seconds'".encode()
        )
        database.execute(
            f"UPDATE pipeline.jobs SET completed_at = ({late}), created_at = ({late}) - interval '60 seconds'".encode()
        )
        steps.one(database, "SELECT pipeline.roll_up()")
    bounds = steps.one(database, "SELECT pipeline.duration_bounds()")
    for table in ("rollups", "rollup_quarters"):
        [row] = steps.rows(database, f"SELECT ran, took FROM pipeline.{table}")
        for counts, true in ((row["ran"], 2), (row["took"], 60)):
            assert sum(counts) == 3
            median = percentile(counts, bounds, 0.5)
            assert median is not None
            assert true / 1.5 <= median <= true * 1.5
    added = steps.one(database, "SELECT pipeline.add_histograms(ran, took) FROM pipeline.rollups")
    assert sum(added) == 6
