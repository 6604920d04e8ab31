"""pipeline.phases_waited_for: at which gates somebody waits."""

from __future__ import annotations

from tests.db import steps
from tests.db.steps import Db
from tests.db.test_admit import ENGINE, MANY, READ


def queues(database: Db) -> list[str]:
    return [row["queue"] for row in steps.rows(database, "SELECT queue FROM pipeline.phases_waited_for()")]


def test_a_phase_is_named_once_while_somebody_waits_there(database: Db) -> None:
    """Neither what is out nor what waits for its time stands at a gate."""
    assert queues(database) == []
    for workflow in ("small", "single", "small"):
        steps.submit(database, workflow)
    steps.submit(database, "pooled", due=steps.FUTURE)
    assert sorted(queues(database)) == ["single.act", "small.queue"]
    steps.admit(database)
    assert queues(database) == []


def test_it_steps_over_those_who_wait_behind_the_first(database: Db) -> None:
    """One look for each phase, however many wait at its gate."""
    database.execute(ENGINE)
    steps.rows(database, MANY, 2000)
    steps.submit(database, "small")
    with database.transaction():
        before = steps.one(database, READ)
        assert sorted(queues(database)) == ["single.act", "small.queue"]
        assert steps.one(database, READ) - before < 20
