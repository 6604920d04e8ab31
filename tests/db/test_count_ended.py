"""pipeline.count_ended: what was submitted and what ended is added to the counters, once."""

from __future__ import annotations

from tests.db import steps
from tests.db.steps import Db

COUNTERS = (
    "SELECT name, n FROM pipeline.counters WHERE name ~ '^(queue_time|job_time|finished|submitted)' ORDER BY name"
)
BACK = "UPDATE pipeline.counter_totals SET n = n - %s * 1000 WHERE name = 'counted.until'"


def count(db: Db) -> bool:
    return bool(steps.one(db, "SELECT pipeline.count_ended()"))


def age(db: Db) -> None:
    """Everything happened a minute ago."""
    db.execute("UPDATE pipeline.attempts SET finished_at = finished_at - interval '1 minute'")
    db.execute(
        "UPDATE pipeline.jobs SET completed_at = completed_at - interval '1 minute', created_at = created_at - interval '61 seconds'"
    )


def counters(db: Db) -> dict[str, int]:
    return {row["name"]: row["n"] for row in steps.rows(db, COUNTERS)}


def test_what_ended_is_counted_once_by_workflow_and_by_how_long_it_took(database: Db) -> None:
    """Of a job with several phases only the last attempt ends it; the mark itself is no counter."""
    assert not count(database), "the first look only says from when on"
    hold = steps.held(database, "triple")
    steps.complete(database, hold)
    for outcome in (steps.complete, steps.fail):
        outcome(database, steps.held(database, "single"))
    age(database)
    database.execute(BACK, (120,))
    assert count(database)
    found = counters(database)
    assert {name: n for name, n in found.items() if name.startswith("finished")} == {
        "finished.single.failed": 1,
        "finished.single.succeeded": 1,
    }
    assert found["job_time.single.5"] == 2 and 2000 <= found["job_time.single.ms"] <= 4000
    waited = {name: n for name, n in found.items() if name.startswith("queue_time.triple.first.")}
    assert sum(n for name, n in waited.items() if not name.endswith(".ms")) == 1
    count(database)
    assert counters(database) == found
    assert steps.rows(database, "SELECT name FROM pipeline.counters WHERE name ~ 'counted'") == []


def test_what_was_submitted_is_counted_when_its_ten_seconds_are_over(database: Db) -> None:
    """Then whoever commits late is not missed."""
    count(database)
    steps.submit(database)
    database.execute(BACK, (60,))
    count(database)
    assert counters(database) == {}
    database.execute(
        "UPDATE pipeline.jobs SET id = overlay(id::text placing left(pipeline.id_at(now() - interval '30 s')::text, 13) from 1 for 13)::uuid"
    )
    database.execute(BACK, (60,))
    count(database)
    assert counters(database) == {"submitted.single": 1}
