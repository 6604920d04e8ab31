"""pipeline.keep_steps: what steps returned is kept while the attempt holds its job."""

from __future__ import annotations

import statistics

import psycopg
import pytest

from tests.db import steps
from tests.db.conftest import Connect
from tests.db.steps import Db, Hold, Row

KEEP = "SELECT place, verdict FROM pipeline.keep_steps(%s::uuid[], %s::bigint[], %s::text[], %s::text[]) ORDER BY place"
EXPLAINED = f"EXPLAIN (ANALYZE, WAL, FORMAT JSON) {KEEP}"
WHERE = "SELECT id, ctid::text AS place, xmin::text AS writer FROM pipeline.jobs ORDER BY id"


def keep_steps(db: Db, *wishes: tuple[Hold, str, str]) -> list[str]:
    holds, names, values = zip(*wishes, strict=True)
    found = steps.rows(db, KEEP, [one.job for one in holds], [one.fence for one in holds], list(names), list(values))
    assert [row["place"] for row in found] == list(range(1, len(wishes) + 1))
    return [row["verdict"] for row in found]


def kept(db: Db) -> list[Row]:
    return steps.rows(db, "SELECT job_id, fence, phase, name, value FROM pipeline.steps ORDER BY job_id, name")


def test_a_step_is_kept_with_its_phase_and_fence(database: Db) -> None:
    """As the text that it is: another attempt reads what this one wrote, to the letter."""
    hold = steps.held(database)
    value = '{"b": 1e20,  "a": "\\u0000"}'
    assert keep_steps(database, (hold, "fetch", value)) == ["won"]
    assert kept(database) == [
        {"job_id": hold.job, "fence": hold.fence, "phase": "act", "name": "fetch", "value": value}
    ]


def test_only_the_present_fence_of_a_running_job_keeps(database: Db) -> None:
    """Not an older or a newer one, nor after the end."""
    hold = steps.held(database)
    with steps.nothing_changes(database):
        assert {keep_steps(database, (wrong, "fetch", "1"))[0] for wrong in steps.wrong_fences(hold)} == {"lost"}
    steps.complete(database, hold)
    with steps.nothing_changes(database):
        assert keep_steps(database, (hold, "fetch", "1")) == ["lost"]


def test_a_cancelled_job_keeps_nothing(database: Db) -> None:
    hold = steps.held(database)
    assert steps.cancel(database, hold.job)
    assert keep_steps(database, (hold, "fetch", "1")) == ["lost"]
    assert kept(database) == []


def test_a_keep_whose_answer_was_lost_is_repeated_without_harm(database: Db) -> None:
    """Also twice in one statement."""
    hold = steps.held(database)
    assert keep_steps(database, (hold, "fetch", "1")) == ["won"]
    with steps.nothing_changes(database):
        assert keep_steps(database, (hold, "fetch", "1"), (hold, "fetch", "1")) == ["won", "won"]
    assert keep_steps(database, (hold, "parse", "2"), (hold, "parse", "2")) == ["won", "won"]
    assert [row["name"] for row in kept(database)] == ["fetch", "parse"]


def test_each_job_gets_its_own_answer(database: Db, connect: Connect) -> None:
    """Somebody else's lock is not waited for, and stops no neighbour."""
    locked, wins, lost, gone = (steps.held(database) for _ in range(4))
    other = connect()
    steps.rows(database, "SELECT pipeline.delete(%s::uuid[])", [gone.job])
    with other.transaction():
        other.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (locked.job,))
        wishes = [(hold, "fetch", "1") for hold in (locked, wins, Hold(lost.job, lost.fence + 1), gone)]
        assert keep_steps(database, *wishes) == ["locked", "won", "lost", "lost"]
    assert [row["job_id"] for row in kept(database)] == [wins.job]
    assert keep_steps(database, (locked, "fetch", "1")) == ["won"]


def test_a_cancel_waits_until_the_step_is_kept(database: Db, connect: Connect) -> None:
    """So that a cancelled job keeps no step that was written after the cancel."""
    hold = steps.held(database)
    other = connect()
    with database.transaction():
        assert keep_steps(database, (hold, "fetch", "1")) == ["won"]
        other.execute("SET lock_timeout = '200ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            steps.cancel(other, hold.job)
    assert steps.cancel(other, hold.job)


def test_a_step_ends_a_row_of_waits(database: Db) -> None:
    """It is progress."""
    hold, other = steps.held(database), steps.held(database)
    database.execute("UPDATE pipeline.jobs SET waits = 7")
    assert keep_steps(database, (hold, "fetch", "1"), (hold, "parse", "2")) == ["won", "won"]
    assert (steps.job(database, hold.job)["waits"], steps.job(database, other.job)["waits"]) == (0, 7)


def test_a_later_visit_to_a_phase_keeps_its_own(database: Db) -> None:
    """The chain was changed, and the job came to a phase again without having read what an earlier visit kept."""
    hold = steps.held(database)
    keep_steps(database, (hold, "fetch", "1"))
    database.execute("UPDATE pipeline.jobs SET fence = fence + 1 WHERE id = %s", (hold.job,))
    assert keep_steps(database, (Hold(hold.job, hold.fence + 1), "fetch", "2")) == ["won"]
    assert [row["value"] for row in kept(database)] == ["2"]


def test_what_is_too_big_is_refused(database: Db) -> None:
    hold = steps.held(database)
    with pytest.raises(psycopg.errors.CheckViolation):
        keep_steps(database, (hold, "n" * 201, "1"))
    with pytest.raises(psycopg.errors.CheckViolation):
        keep_steps(database, (hold, "fetch", "1" * 65_537))


def test_a_failed_job_that_is_replayed_has_its_steps(database: Db) -> None:
    """And so has one that is tried again."""
    hold = steps.held(database)
    keep_steps(database, (hold, "fetch", "1"))
    steps.fail(database, hold)
    assert steps.replay(database, hold.job)
    assert [row["name"] for row in kept(database)] == ["fetch"]


def test_a_step_leaves_the_row_of_its_job_alone_and_costs_little_wal(database: Db) -> None:
    """The job's row is locked, not written. Of one statement for each step, and of one for ten jobs."""
    holds = [steps.held(database) for _ in range(10)]
    value = '{"url": "https://example.org/page", "status": 200}'
    before = steps.rows(database, WHERE)
    figures = {
        size: statistics.median(wal(database, holds[:size], f"{size} {n}", value) for n in range(20))
        for size in (1, 10)
    }
    print(f"\nWAL bytes a step: {figures[1]:.0f} alone, {figures[10]:.0f} in a group of ten")
    assert steps.rows(database, WHERE) == before
    assert figures[10] < 600


def wal(db: Db, holds: list[Hold], name: str, value: str) -> float:
    """Bytes a step of one statement. Its own: other tests write to the same WAL. The median knows no whole pages."""
    wishes = ([one.job for one in holds], [one.fence for one in holds], [name] * len(holds), [value] * len(holds))
    return float(steps.one(db, EXPLAINED, *wishes)[0]["Plan"]["WAL Bytes"]) / len(holds)
