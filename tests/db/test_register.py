"""Workflows are made known in as many statements for hundreds as for one."""

from __future__ import annotations

import psycopg
from sqlalchemy import create_engine, event

from pipeline.declare.registry import DeclaredWorkflow, workflows
from pipeline.store.register import introduce
from tests.db import steps
from tests.db.steps import Db

FORGET = "DELETE FROM pipeline.phases"
PHASES = "SELECT count(*) FROM pipeline.phases WHERE position > 0"


def in_force(database: Db) -> list[DeclaredWorkflow]:
    """Those that this process and the database know."""
    names = steps.one(database, "SELECT array_agg(DISTINCT workflow) FROM pipeline.phases")
    return [workflow for name, workflow in workflows().items() if name in names]


def statements(database: Db, known: list[DeclaredWorkflow]) -> list[str]:
    """What a worker that boots executes."""
    said: list[str] = []
    url = psycopg.conninfo.make_conninfo("", **database.info.get_parameters(), password=database.info.password)
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    event.listen(engine, "before_cursor_execute", lambda *args: said.append(args[2]))
    with engine.begin() as connection:
        assert introduce(connection, known, 300.0) == []
    engine.dispose()
    return said


def test_what_is_known_takes_six_statements(database: Db) -> None:
    """Which are known, and what is in force, of phases, of schedules, of limits, of keys and of hooks."""
    known = in_force(database)
    assert len(known) > 2
    assert len(statements(database, known)) == 6


def test_what_is_new_takes_a_dozen_and_a_few(database: Db) -> None:
    """The same rows as before."""
    before, known = steps.one(database, PHASES), in_force(database)
    database.execute(FORGET)
    assert len(statements(database, known)) <= 18
    assert steps.one(database, PHASES) == before
