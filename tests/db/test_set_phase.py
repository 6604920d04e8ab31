"""pipeline.set_pool and pipeline.set_rate: an operator's pool and rate, which a deploy does not undo."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from pipeline.declare.registry import workflows
from pipeline.store.register import differences, register
from tests.db import steps
from tests.db.steps import Db

POOL = "SELECT pool, declared_pool, pool_is_set FROM pipeline.phases WHERE queue = 'pooled.narrow'"
RATE = "SELECT throttle_count, throttle_seconds, rate_is_set FROM pipeline.phases WHERE queue = %s"
TAKEN = "SELECT number FROM pipeline.places p JOIN pipeline.phases f ON f.id = p.phase_id WHERE queue = %s AND job_id IS NOT NULL"


def set_pool(db: Db, pool: int | None, *, workflow: str = "pooled", phase: str = "narrow", back: bool = False) -> bool:
    return bool(steps.one(db, "SELECT pipeline.set_pool(%s, %s, %s, %s)", workflow, phase, pool, not back))


def migrate(engine: Engine) -> list[str]:
    """As ``pipeline migrate``; what the code declares otherwise, afterwards."""
    with engine.begin() as connection:
        register(connection, workflows().values(), 300.0)
        return [one.option for one in differences(connection, workflows().values(), 300.0)]


def held(db: Db, n: int) -> list[steps.Hold]:
    return [steps.held(db, "pooled") for _ in range(n)]


def test_a_deploy_leaves_what_an_operator_has_set(database: Db, engine: Engine) -> None:
    """Neither is it called a difference. What the code declares comes back when it is asked for."""
    assert set_pool(database, 1)
    assert steps.one(database, "SELECT pipeline.set_rate('single', 'act', 5, 60)")
    assert migrate(engine) == []
    assert steps.rows(database, POOL) == [{"pool": 1, "declared_pool": 3, "pool_is_set": True}]
    assert steps.rows(database, RATE, "single.act") == [
        {"throttle_count": 5, "throttle_seconds": 60.0, "rate_is_set": True}
    ]
    assert set_pool(database, None, back=True)
    assert steps.one(database, "SELECT pipeline.set_rate('single', 'act', NULL, NULL, false)")
    assert steps.rows(database, POOL) == [{"pool": 3, "declared_pool": 3, "pool_is_set": False}]
    assert steps.rows(database, RATE, "single.act")[0]["throttle_count"] is None
    assert migrate(engine) == []


def test_a_new_declaration_is_in_force_only_after_the_operators_has_gone(database: Db, engine: Engine) -> None:
    """What the code declared meanwhile is what comes back."""
    set_pool(database, 2)
    database.execute("UPDATE pipeline.phases SET declared_pool = 9 WHERE queue = 'pooled.narrow'")
    with engine.begin() as connection:
        assert [one.option for one in differences(connection, workflows().values(), 300.0)] == ["pool"]
    set_pool(database, None, back=True)
    assert steps.rows(database, POOL)[0]["pool"] == 9
    assert migrate(engine) == []
    assert steps.rows(database, POOL)[0]["pool"] == 3


def test_no_more_run_than_a_smaller_pool_once_the_others_have_left(database: Db) -> None:
    """Whoever has a place beyond it keeps it and counts."""
    first, second, third = held(database, 3)
    set_pool(database, 2)
    waits = steps.submit(database, "pooled")
    assert steps.admit(database) == []
    steps.complete(database, first)
    assert steps.admit(database) == [], "two run already"
    steps.complete(database, third)
    assert [row["job_id"] for row in steps.admit(database)] == [waits]
    assert len(steps.rows(database, TAKEN, "pooled.narrow")) == 2
    steps.complete(database, second)


def test_a_larger_pool_again_counts_those_that_never_left(database: Db) -> None:
    """Smaller and larger again is not more than the larger."""
    held(database, 3)
    set_pool(database, 1)
    set_pool(database, 3)
    steps.submit(database, "pooled")
    assert steps.admit(database) == []
    set_pool(database, 4)
    assert len(steps.admit(database)) == 1


def test_a_pool_where_there_was_none_counts_what_runs_already(database: Db) -> None:
    """Also a message that nobody has claimed; without a pool again everybody goes."""
    steps.held(database, "single")
    steps.submit(database)
    steps.admit(database)
    set_pool(database, 2, workflow="single", phase="act")
    steps.submit(database)
    assert steps.admit(database) == []
    assert len(steps.rows(database, TAKEN, "single.act")) == 2
    set_pool(database, None, workflow="single", phase="act")
    assert len(steps.admit(database)) == 1
    assert steps.rows(database, TAKEN, "single.act") == []


def test_a_rate_is_in_force_at_once(database: Db) -> None:
    """What was sent before does not count against it."""
    for _ in range(5):
        steps.submit(database)
    assert len(steps.admit(database, most=2)) == 2
    steps.one(database, "SELECT pipeline.set_rate('single', 'act', 2, 60)")
    assert len(steps.admit(database)) == 2
    assert steps.admit(database) == []
    steps.one(database, "SELECT pipeline.set_rate('single', 'act', NULL, NULL)")
    assert len(steps.admit(database)) == 1


@pytest.mark.parametrize(("workflow", "phase"), [("pooled", "gone"), ("gone", "narrow")])
def test_a_phase_that_does_not_exist_is_said(database: Db, workflow: str, phase: str) -> None:
    """Nothing is changed."""
    assert not set_pool(database, 1, workflow=workflow, phase=phase)
    assert steps.one(database, "SELECT pipeline.set_rate(%s, %s, 1, 1)", workflow, phase) is False
