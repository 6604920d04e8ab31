"""Which statements of a phase's write may share a transaction with those of other jobs."""

from __future__ import annotations

import pytest

from pipeline.store.shared_connection import may_share


@pytest.mark.parametrize(
    ("statement", "shares"),
    [
        ("INSERT INTO a VALUES (1)", True),
        ("  -- why\n /* so */ update a set b = 1", True),
        ("WITH x AS (SELECT 1) DELETE FROM a", True),
        ("SELECT submit('x')", True),
        ("SAVEPOINT s", True),
        ("ROLLBACK TO SAVEPOINT s", True),
        ("ROLLBACK", False),
        ("SET LOCAL work_mem = 1", False),
        ("SELECT set_config('a.b', 'c', true)", False),
        ("INSERT INTO a VALUES (1); COMMIT", False),
        ("CALL p()", False),
        ("DO $$ BEGIN COMMIT; END $$", False),
        ("CREATE TABLE t (n int)", False),
        ("LOCK TABLE a", False),
        ("SELECT pg_advisory_lock(1)", False),
        ("insertion", False),
    ],
)
def test_only_statements_that_change_rows_share(statement: str, shares: bool) -> None:
    assert may_share(statement) is shares
