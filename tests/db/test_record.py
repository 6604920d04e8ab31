"""pipeline.record and pipeline.prune_audit: who did what."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import Engine

from pipeline.store.control import actions as control
from pipeline.store.control.actions import Actor, Asked
from tests.db import steps
from tests.db.steps import Db

ADA = Actor("ada", "dashboard", "10.0.0.7")
GRACE = Actor("grace", "command line", "host")


def actions(engine: Engine, asked: Asked, before: int | None = None, limit: int = 10) -> list[str]:
    with engine.begin() as connection:
        return [one["action"] for one in control.audit(connection, asked, before, limit)]


def test_what_was_done_is_found_by_job_by_person_and_by_kind(database: Db, engine: Engine) -> None:
    """Newest first, page by page."""
    job, other = uuid4(), uuid4()
    with engine.begin() as connection:
        control.record(
            connection, ADA, "cancel", jobs=2, ids=[job, other], reason="wrong", detail={"where": {"tag": "x"}}
        )
        control.record(connection, GRACE, "pause", subject="single.act")
        control.record(connection, GRACE, "replay", jobs=1, ids=[job])
    assert actions(engine, Asked()) == ["replay", "pause", "cancel"]
    assert actions(engine, Asked(job=job)) == ["replay", "cancel"]
    assert actions(engine, Asked(who="grace", action="pause")) == ["pause"]
    assert actions(engine, Asked(subject="single.act")) == ["pause"]
    with engine.begin() as connection:
        [newest] = control.audit(connection, Asked(), None, 1)
        [first] = control.audit(connection, Asked(job=other), None, 10)
    assert actions(engine, Asked(), newest["id"]) == ["pause", "cancel"]
    assert (first["who"], first["door"], first["origin"], first["reason"]) == ("ada", "dashboard", "10.0.0.7", "wrong")
    assert (first["jobs"], first["detail"]) == (2, {"where": {"tag": "x"}})


def test_what_is_rolled_back_is_not_written_down(database: Db, engine: Engine) -> None:
    """It is part of the transaction that does it."""
    with pytest.raises(RuntimeError), engine.begin() as connection:
        control.record(connection, ADA, "cancel")
        raise RuntimeError
    assert actions(engine, Asked()) == []


def test_it_goes_by_age_in_small_batches(database: Db, engine: Engine) -> None:
    """What is younger stays."""
    with engine.begin() as connection:
        for _ in range(4):
            control.record(connection, ADA, "cancel")
    database.execute(
        "UPDATE pipeline.audit SET at = now() - interval '2 days' WHERE id IN (SELECT id FROM pipeline.audit ORDER BY id LIMIT 3)"
    )
    assert [steps.one(database, "SELECT pipeline.prune_audit('1 day', 2)") for _ in range(3)] == [2, 1, 0]
    assert actions(engine, Asked()) == ["cancel"]


def test_a_door_that_does_not_exist_is_refused(database: Db) -> None:
    """So that one name stands for one door."""
    with pytest.raises(psycopg.errors.CheckViolation):
        database.execute("SELECT pipeline.record('ada', 'window', NULL, 'cancel')")
