"""pipeline.step_bulk_actions: what is done with many jobs, part by part, at a rate, until somebody stops it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Engine

from pipeline.store.control import bulk
from pipeline.store.control.actions import Actor
from tests.db import steps
from tests.db.conftest import Connect
from tests.db.steps import Db

ADA = Actor("ada", "api")
GROUP = "SELECT workflow, failed_in AS phase, cause FROM pipeline.jobs WHERE failed_in IS NOT NULL LIMIT 1"
FAILED = "SELECT count(*) FROM pipeline.jobs WHERE status = 'failed'"
LATER = "UPDATE pipeline.bulk_actions SET step_at = step_at - make_interval(secs => %s)"


def fail(db: Db, n: int) -> list[steps.Hold]:
    holds = [steps.held(db) for _ in range(n)]
    for hold in holds:
        steps.fail(db, hold, "ValueError: no (shop.py:3)")
    return holds


def begin(engine: Engine, action: bulk.Action, wanted: dict[str, object], rate: float | None = None) -> int:
    with engine.begin() as connection:
        number = bulk.begin(connection, ADA, action, wanted, total=7, per_second=rate, reason="why")
    assert number is not None
    return number


def step(db: Db, most: int = 2) -> float:
    return float(steps.one(db, "SELECT pipeline.step_bulk_actions(%s)", most))


def shown(engine: Engine) -> list[tuple[str, int]]:
    with engine.begin() as connection:
        return [(row["state"], row["done"]) for row in bulk.actions(connection)]


def held(engine: Engine) -> list[tuple[str, int, int]]:
    """State, done and put aside of each, newest first."""
    with engine.begin() as connection:
        return [(row["state"], row["done"], row["held"]) for row in bulk.actions(connection)]


@contextmanager
def no_wait_ends(db: Db) -> Iterator[None]:
    """Whoever waits for a lock waits until the statement fails."""
    db.execute("ALTER FUNCTION pipeline.step_bulk_actions(integer) SET lock_timeout = '1h'")
    db.execute("SET statement_timeout = '20s'")
    try:
        yield
    finally:
        db.execute("ALTER FUNCTION pipeline.step_bulk_actions(integer) SET lock_timeout = '100ms'")
        db.execute("RESET statement_timeout")


def steer(engine: Engine, number: int, state: bulk.State) -> bool:
    with engine.begin() as connection:
        return bulk.steer(connection, number, state)


def test_a_group_is_replayed_part_by_part_and_none_of_it_twice(database: Db, engine: Engine) -> None:
    """A job that fails again after it began is left alone."""
    holds = fail(database, 5)
    begin(engine, "replay", steps.rows(database, GROUP)[0])
    assert step(database) < 1
    assert (steps.one(database, FAILED), shown(engine)) == (3, [("running", 2)])
    [first] = [row for row in steps.admit(database) if row["job_id"] == holds[0].job]
    assert first
    claimed = steps.claim(database, holds[0].job)
    steps.fail(database, steps.Hold(holds[0].job, claimed["fence"]), "ValueError: no (shop.py:3)")
    while step(database) < 1:
        pass
    assert shown(engine) == [("done", 5)]
    assert steps.job(database, holds[0].job)["status"] == "failed"
    assert steps.rows(database, "SELECT jobs, cardinality(job_ids) AS ids FROM pipeline.audit") == [
        {"jobs": 5, "ids": 5}
    ]


def test_a_rate_is_kept_and_a_stall_is_not_made_up(database: Db, engine: Engine) -> None:
    """Ten a second: one in a tenth, and ten after an hour, not thousands."""
    fail(database, 30)
    begin(engine, "replay", steps.rows(database, GROUP)[0], rate=10)
    assert step(database, 100) <= 0.1
    database.execute(LATER, (0.35,))
    step(database, 100)
    done = shown(engine)[0][1]
    assert 3 <= done <= 5
    database.execute(LATER, (3600,))
    step(database, 100)
    assert shown(engine) == [("running", done + 10)]


def test_it_is_paused_resumed_and_stopped_by_anybody(database: Db, engine: Engine) -> None:
    """What was done stays; what has ended cannot be steered."""
    fail(database, 6)
    number = begin(engine, "discard", steps.rows(database, GROUP)[0])
    step(database)
    assert steer(engine, number, "paused")
    assert step(database) == 3600
    assert shown(engine) == [("paused", 2)]
    assert steer(engine, number, "running")
    step(database)
    assert steer(engine, number, "stopped")
    assert not steer(engine, number, "running")
    assert (step(database), shown(engine), steps.one(database, FAILED)) == (3600, [("stopped", 4)], 2)


def test_jobs_that_match_a_filter_are_cancelled_and_those_submitted_later_are_not(database: Db, engine: Engine) -> None:
    """By tag, in any state that is not final."""
    submit = "SELECT pipeline.submit('single', '{}', p_tags => ARRAY['wrong'])"
    for _ in range(5):
        database.execute(submit)
    begin(engine, "cancel", {"status": "unfinished", "tag": "wrong"})
    database.execute(submit)
    while step(database) < 1:
        pass
    assert shown(engine) == [("done", 5)]
    assert steps.one(database, "SELECT count(*) FROM pipeline.jobs WHERE error_message = 'why'") == 5


def test_a_row_that_somebody_holds_for_long_is_put_aside_and_all_others_are_done(
    database: Db, connect: Connect, engine: Engine
) -> None:
    """No look waits for it, the next action goes on, and it is done when it is free."""
    holds = fail(database, 6)
    begin(engine, "replay", steps.rows(database, GROUP)[0])
    database.execute("SELECT pipeline.submit('single', '{}', p_tags => ARRAY['wrong'])")
    begin(engine, "cancel", {"status": "unfinished", "tag": "wrong"})
    other = connect()
    with other.transaction(), no_wait_ends(database):
        other.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (holds[1].job,))
        while step(database) < 1:
            pass
        assert step(database) == 1
        assert held(engine) == [("done", 1, 0), ("running", 5, 1)]
    step(database)
    assert held(engine) == [("done", 1, 0), ("done", 6, 0)]
    assert steps.one(database, FAILED) == 0


def test_a_parent_whose_child_is_held_is_put_aside_and_its_part_is_done(
    database: Db, connect: Connect, engine: Engine
) -> None:
    """Each is tried by itself; the one that cannot be done does not keep its place at the front."""
    first = steps.submit(database, "single", tags=["wrong"])
    batch = steps.one(
        database,
        "INSERT INTO pipeline.batches (id, parent_job, policy) VALUES (gen_random_uuid(), %s, 'all') RETURNING id",
        first,
    )
    child = steps.submit(database, "single", batch=batch)
    for _ in range(4):
        steps.submit(database, "single", tags=["wrong"])
    begin(engine, "cancel", {"status": "unfinished", "tag": "wrong"})
    other = connect()
    with other.transaction():
        other.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (child,))
        for _ in range(8):
            step(database)
        assert held(engine) == [("running", 4, 1)]
        assert steps.job(database, first)["status"] == "pending"
    step(database)
    assert held(engine) == [("done", 5, 0)]
    assert steps.job(database, child)["status"] == "cancelled"


def test_what_changed_while_it_was_held_is_left_alone(database: Db, connect: Connect, engine: Engine) -> None:
    """Somebody discarded one, and another ran and failed anew: neither is replayed."""
    holds = fail(database, 3)
    begin(engine, "replay", {"status": "failed"})
    other = connect()
    with other.transaction():
        other.execute("SELECT pipeline.discard(%s, 'no use')", (holds[0].job,))
        steps.replay(other, holds[1].job)
        steps.fail(other, steps.hold(other, holds[1].job), "ValueError: again (shop.py:3)")
        while step(database) < 1:
            pass
        assert held(engine) == [("running", 1, 2)]
    step(database)
    assert held(engine) == [("done", 1, 0)]
    assert [steps.job(database, hold.job)["status"] for hold in holds] == ["cancelled", "failed", "pending"]


def test_a_job_that_is_deleted_while_it_is_held_is_forgotten(database: Db, connect: Connect, engine: Engine) -> None:
    """And what is stopped remembers none."""
    holds = fail(database, 2)
    numbers = [begin(engine, "replay", {"status": "failed"}), begin(engine, "discard", steps.rows(database, GROUP)[0])]
    other = connect()
    with other.transaction():
        other.execute("DELETE FROM pipeline.jobs WHERE id = ANY(%s)", ([hold.job for hold in holds],))
        step(database)
        assert steer(engine, numbers[1], "stopped")
        assert held(engine) == [("stopped", 0, 0), ("running", 0, 2)]
    assert step(database) < 1
    assert step(database) == 3600
    assert held(engine) == [("stopped", 0, 0), ("done", 0, 0)]


@pytest.mark.parametrize("again", [False, True])
def test_a_canary_is_replayed_at_once_and_seen_by_everybody(database: Db, engine: Engine, again: bool) -> None:
    """With its job's state; one that is not failed any more is none."""
    [hold] = fail(database, 1)
    group = steps.rows(database, GROUP)[0]
    if again:
        steps.one(database, "SELECT pipeline.replay(%s)", hold.job)
    with engine.begin() as connection:
        number = bulk.begin(connection, ADA, "canary", group, total=1, job=hold.job)
        found = bulk.actions(connection)
    assert (number is None) == again
    assert [(one["job"], one["job_status"]) for one in found] == ([] if again else [(hold.job, "pending")])
