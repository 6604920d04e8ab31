"""A job on its way touches no index of ``jobs``."""

from __future__ import annotations

from tests.db import steps
from tests.db.steps import Db

HEAP_ONLY = """SELECT pg_stat_get_xact_tuples_hot_updated('pipeline.jobs'::regclass) AS heap_only,
    pg_stat_get_xact_tuples_updated('pipeline.jobs'::regclass) AS updates"""
COLUMNS = """SELECT DISTINCT a.attname FROM pg_depend d
    JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    WHERE d.classid = 'pg_class'::regclass AND d.refobjid = 'pipeline.jobs'::regclass
      AND d.objid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'pipeline.jobs'::regclass) ORDER BY 1"""


def test_claim_and_hand_over_are_heap_only(database: Db) -> None:
    """Neither leaves anything in an index behind; only the end, once a job, files it away."""
    job_id = steps.submit(database, "triple")
    with database.transaction():
        for _ in range(3):
            steps.complete(database, steps.hold(database, job_id))
        [row] = steps.rows(database, HEAP_ONLY)
    assert steps.job(database, job_id)["rest"] == "third:succeeded"
    assert row == {"heap_only": 5, "updates": 6}


def test_no_index_of_jobs_names_a_column_that_changes_on_the_way(database: Db) -> None:
    """Neither as a key nor in its condition. Whoever adds an index finds out here what it would cost."""
    found = {next(iter(row.values())) for row in steps.rows(database, COLUMNS)}
    assert found == {"id", "workflow", "batch_id", "cause", "rest", "failed_in"}
