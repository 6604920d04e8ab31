"""pipeline.drain: an operator lets a worker take nothing new."""

from __future__ import annotations

from tests.db import steps
from tests.db.steps import Db

STATE = "SELECT pipeline.worker_state(w) FROM pipeline.workers w WHERE id = %s"


def drain(db: Db, worker: str, wanted: bool = True) -> bool:
    return bool(steps.one(db, "SELECT pipeline.drain(%s, %s)", worker, wanted))


def test_a_worker_that_is_alive_is_told_and_shown_as_draining(database: Db) -> None:
    """Twice is as once, and it can be taken back."""
    number = steps.sign_on(database, "w2")
    database.execute("LISTEN pipeline_worker")
    assert drain(database, "w2") and drain(database, "w2")
    assert [notice.payload for notice in database.notifies(timeout=0.5)] == [str(number)] * 2
    assert steps.one(database, STATE, "w2") == "draining"
    assert drain(database, "w2", False)
    assert steps.one(database, STATE, "w2") == "alive"


def test_one_that_is_not_there_cannot_be_drained(database: Db) -> None:
    """Nor one that has gone."""
    number = steps.sign_on(database, "w2")
    steps.die(database, number)
    assert not drain(database, "w2")
    assert not drain(database, "nobody")
    assert steps.one(database, STATE, "w2") == "missing"
