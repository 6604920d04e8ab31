"""docs/howto/keys.md, as it stands: what it declares is in force, and each statement of SQL does what it says."""

from __future__ import annotations

import json
import shlex

import pytest
from typer.testing import CliRunner

from pipeline.declare import registry
from pipeline.declare.registry import workflows
from pipeline.front.cli.main import app
from pipeline.store import database
from pipeline.store.register import differences, register
from tests.docs.blocks import blocks
from tests.place import ROOT, Place

PAGE = blocks(ROOT / "docs/howto/keys.md")


@pytest.fixture
def declared(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's module, in this process and in PostgreSQL."""
    monkeypatch.setattr(registry, "_workflows", dict(workflows()))
    [module] = [block.text for block in PAGE if block.kind == "python"]
    exec(compile(module, "audits.py", "exec"), {"__name__": "audits"})
    with database.engine().begin() as connection:
        register(connection, [workflows()["audits"]], 300.0)


def test_what_the_page_declares_is_in_force(place: Place, declared: None) -> None:
    [row] = place.rows("SELECT field, per_key, in_order FROM pipeline.turns WHERE workflow = 'audits'")
    assert row == {"field": "customer", "per_key": 2, "in_order": False}


def test_each_statement_of_the_page_runs(place: Place, declared: None) -> None:
    [script] = [block.text for block in PAGE if block.kind == "sql"]
    for statement in script.strip().splitlines():
        place.rows(statement)
    rows = place.rows("SELECT key, weight, paused_until FROM pipeline.key_turns ORDER BY key")
    assert [tuple(row.values()) for row in rows] == [("c-17", 3, None), ("c-18", 1, None)]


def test_each_command_of_the_page_says_what_it_did(place: Place, declared: None) -> None:
    """The list has who is under way and who waits; the audit has who did what."""
    place.db.execute(
        """SELECT pipeline.submit_many('audits', ARRAY(SELECT jsonb_build_object('customer', 'c-1' || 7 + n / 5, 'url', 'u')
           FROM generate_series(0, 9) AS n))"""
    )
    place.rows("SELECT * FROM pipeline.admit(1, 100)")
    [script] = [block.text for block in PAGE if block.kind == "sh"]
    said = []
    for line in script.strip().splitlines():
        ran = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
        assert ran.exit_code == 0, ran.output
        said.append(ran.output)
    assert "c-17 │ 2         │ 3       │ 1" in said[0] and "c-18 │ 2         │ 3" in said[0]
    assert "3 jobs of c-17" in said[1] and "resumed c-18 of audits" in said[3]
    listed = json.loads(CliRunner().invoke(app, ["keys", "list", "audits", "--json"]).output)
    assert [(one["key"], one["weight"], one["paused"]) for one in listed] == [("c-17", 3, False), ("c-18", 1, False)]
    assert CliRunner().invoke(app, ["keys", "list", "audits", "--from", "c-18"]).output.count("c-1") == 1
    assert place.count("SELECT count(*) FROM pipeline.audit WHERE action LIKE '%%key'") == 3


def test_a_workflow_that_loses_its_keys_leaves_its_waiting_jobs_their_turns(place: Place, declared: None) -> None:
    """And says so before: where code and database differ, the database is in force."""
    bodies = 'ARRAY(SELECT \'{"customer": "c", "url": "u"}\'::jsonb FROM generate_series(1, 3))'
    place.db.execute(f"SELECT pipeline.submit_many('audits', {bodies})".encode())
    workflow = workflows()["audits"]
    without = registry.DeclaredWorkflow(workflow.name, workflow.module, workflow.body, phases=workflow.phases)
    with database.engine().begin() as connection:
        found = {one.option: (one.database, one.code) for one in differences(connection, [without], 300.0)}
        assert found["key: field"] == ("customer", None) and found["key: per_key"] == (2, None)
        register(connection, [without], 300.0)
    place.db.execute(f"SELECT pipeline.submit_many('audits', {bodies})".encode())
    admitted = place.rows("SELECT * FROM pipeline.admit(1, 100)")
    assert len(admitted) == 6
    assert place.count("SELECT count(*) FROM pipeline.outbox WHERE has_turn") == 3
