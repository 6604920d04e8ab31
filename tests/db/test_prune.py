"""pipeline.prune: what ended long ago goes."""

from __future__ import annotations

from uuid import UUID

from tests.db import clock, steps
from tests.db.conftest import Connect
from tests.db.steps import Db

DAY = 86400.0


def prune(db: Db, most: int = 100, failed: str | None = None) -> int:
    return int(steps.one(db, "SELECT pipeline.prune(interval '30 days', %s, %s::interval)", most, failed))


def aged(db: Db, job_id: UUID, days: float = 31) -> UUID:
    """The same job, but made and ended that long ago: ids tell the time, so it gets another one."""
    old: UUID = steps.one(
        db,
        "SELECT (left(pipeline.id_at(now() - %s * interval '1 day')::text, 18) || right(%s::text, 18))::uuid",
        days,
        job_id,
    )
    db.execute("UPDATE pipeline.attempts SET job_id = %s WHERE job_id = %s", (old, job_id))
    db.execute(
        "UPDATE pipeline.jobs SET id = %s, completed_at = completed_at - %s * interval '1 day' WHERE id = %s",
        (old, days, job_id),
    )
    return old


def ended(db: Db, batch: UUID | None = None) -> UUID:
    hold = steps.held(db, batch=batch)
    steps.complete(db, hold)
    return hold.job


def old_batch(db: Db) -> None:
    """Complete and empty, for forty days: its id tells the time, too."""
    steps.seal(db, steps.open_batch(db))
    db.execute(
        "UPDATE pipeline.batches SET id = (left(pipeline.id_at(now() - interval '40 days')::text, 18)"
        " || right(id::text, 18))::uuid, completed_at = now() - interval '40 days'"
    )


def test_an_old_job_goes_with_its_history(database: Db) -> None:
    """A younger one stays."""
    aged(database, ended(database))
    young = ended(database)
    assert prune(database) == 1
    assert [row["id"] for row in steps.rows(database, "SELECT id FROM pipeline.jobs")] == [young]
    assert [row["job_id"] for row in steps.rows(database, "SELECT job_id FROM pipeline.attempts")] == [young]
    assert prune(database) == 0


def test_a_call_removes_a_small_batch_oldest_first(database: Db) -> None:
    """So that no transaction gets long."""
    old = [aged(database, ended(database), days) for days in (40, 33, 36)]
    assert prune(database, most=2) == 2
    assert [row["id"] for row in steps.rows(database, "SELECT id FROM pipeline.jobs")] == [old[1]]


def test_a_job_that_has_not_ended_stays_however_old(database: Db) -> None:
    """And one that ended lately, though it was made long ago."""
    aged(database, steps.held(database).job)
    late = aged(database, ended(database))
    database.execute("UPDATE pipeline.jobs SET completed_at = now() WHERE id = %s", (late,))
    with steps.nothing_changes(database):
        assert prune(database) == 0


def test_children_of_an_open_batch_stay(database: Db) -> None:
    """Until it is complete."""
    batch = steps.open_batch(database)
    child = aged(database, ended(database, batch))
    with steps.nothing_changes(database):
        assert prune(database) == 0
    steps.seal(database, batch)
    assert prune(database) == 1
    assert steps.rows(database, "SELECT 1 FROM pipeline.jobs WHERE id = %s", child) == []


def test_a_complete_batch_and_a_dead_worker_go_in_their_time(database: Db) -> None:
    """G8: the history kept is bounded, and every deploy makes new workers."""
    steps.sign_on(database, "w1", alive=False)
    old_batch(database)
    steps.reclaim(database)
    clock.let_pass(database, 400 * DAY)
    prune(database)
    assert (
        steps.one(database, "SELECT (SELECT count(*) FROM pipeline.batches) + (SELECT count(*) FROM pipeline.workers)")
        == 0
    )


def test_failed_jobs_stay_until_somebody_decides(database: Db) -> None:
    """F25: they do not expire, however many there are and however long ago they failed."""
    hold = steps.held(database)
    steps.fail(database, hold)
    kept = aged(database, hold.job, 4000)
    aged(database, ended(database))
    assert prune(database, most=1) == 1
    assert [row["id"] for row in steps.rows(database, "SELECT id FROM pipeline.jobs")] == [kept]
    assert steps.outcomes(database, kept) == ["failed"]
    assert steps.replay(database, kept) is True


def test_failed_jobs_go_after_a_time_of_their_own_where_one_is_set(database: Db) -> None:
    """Longer or shorter than the others."""
    ages = {}
    for days in (40, 100):
        hold = steps.held(database)
        steps.fail(database, hold)
        ages[days] = aged(database, hold.job, days)
    assert prune(database, failed="90 days") == 1
    assert [row["id"] for row in steps.rows(database, "SELECT id FROM pipeline.jobs")] == [ages[40]]


def test_a_cancelled_job_goes_like_one_that_succeeded(database: Db) -> None:
    """Somebody decided."""
    job = steps.submit(database)
    steps.cancel(database, job)
    aged(database, job)
    assert prune(database) == 1


def test_a_locked_job_or_batch_keeps_nobody_waiting(database: Db, connect: Connect) -> None:
    """It stays until next time; the others go."""
    old_batch(database)
    locked, free = aged(database, ended(database), 40), aged(database, ended(database))
    other = connect()
    with other.transaction():
        other.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (locked,))
        other.execute("SELECT 1 FROM pipeline.batches FOR UPDATE")
        assert prune(database) == 1
    assert steps.rows(database, "SELECT 1 FROM pipeline.jobs WHERE id = %s", free) == []
    assert prune(database) == 1
    assert steps.rows(database, "SELECT 1 FROM pipeline.batches") == []
