"""pipeline.keep_log: why an attempt failed."""

from __future__ import annotations

from tests.db import steps
from tests.db.steps import Db

LOGS = "SELECT fence, traceback, lines FROM pipeline.attempt_logs WHERE job_id = %s ORDER BY fence"


def test_what_was_said_first_stays(database: Db) -> None:
    """An attempt that is settled again after an unknown COMMIT."""
    hold = steps.held(database)
    for said in ("first", "second"):
        database.execute("SELECT pipeline.keep_log(%s, %s, %s, 'a line')", (hold.job, hold.fence, said))
    assert steps.rows(database, LOGS, hold.job) == [{"fence": hold.fence, "traceback": "first", "lines": "a line"}]


def test_the_newest_twenty_of_a_job_are_kept(database: Db) -> None:
    """However often it fails."""
    hold = steps.held(database)
    for fence in range(1, 31):
        database.execute("SELECT pipeline.keep_log(%s, %s, 'x', NULL)", (hold.job, fence))
    assert [row["fence"] for row in steps.rows(database, LOGS, hold.job)] == list(range(11, 31))


def test_they_go_with_the_job(database: Db) -> None:
    """Deleted, or pruned; what is left by hand is found."""
    hold = steps.held(database)
    database.execute("SELECT pipeline.keep_log(%s, 1, 'x', NULL)", (hold.job,))
    database.execute("SELECT pipeline.delete(ARRAY[%s::uuid])", (hold.job,))
    assert steps.rows(database, LOGS, hold.job) == []
    database.execute("SELECT pipeline.keep_log(%s, 1, 'x', NULL)", (hold.job,))
    [found] = steps.rows(database, "SELECT * FROM pipeline.verify(true)")
    assert (found["problem"], found["subject"], found["detail"]) == (
        "steps, events or logs without a job",
        str(hold.job),
        "1 rows",
    )
    assert steps.rows(database, "SELECT * FROM pipeline.verify(true)") == []
