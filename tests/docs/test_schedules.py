"""docs/howto/schedules.md, as it stands: what it declares can be declared, and each statement of SQL does what it says."""

from __future__ import annotations

import shlex
from datetime import timedelta

import pytest
import typer

from pipeline.declare import registry
from pipeline.declare.registry import workflows
from pipeline.front.cli.main import app
from pipeline.store import database
from pipeline.store.register import register
from tests.docs.blocks import blocks
from tests.place import ROOT, Place

PAGE = blocks(ROOT / "docs/howto/schedules.md")


@pytest.fixture
def declared(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's module, in this process and in PostgreSQL."""
    monkeypatch.setattr(registry, "_workflows", dict(workflows()))
    [module] = [block.text for block in PAGE if block.kind == "python" and block.text.startswith("# audits.py")]
    exec(compile(module, "audits.py", "exec"), {"__name__": "audits"})
    with database.engine().begin() as connection:
        register(connection, [workflows()["audit"]], 300.0)


def test_what_the_page_declares_is_in_force(place: Place, declared: None) -> None:
    found = place.rows("SELECT name, cron, every, timezone, overlap FROM pipeline.schedules ORDER BY name")
    assert [tuple(row.values()) for row in found] == [
        ("often", None, timedelta(minutes=5), "UTC", "skip"),
        ("weekly", "0 7 * * 1", None, "Europe/Paris", "allow"),
    ]


def test_each_statement_of_the_page_runs(place: Place, declared: None) -> None:
    """In their order; the list names those that the page and its module made."""
    [script] = [block.text for block in PAGE if block.kind == "sql"]
    answers = {}
    for statement in filter(None, map(str.strip, script.split(";"))):
        answers[statement.split("(")[0].split()[-1]] = place.rows(statement.replace("%", "%%"))
    names = [row["name"] for row in answers.get("pipeline.list_schedules", [])]
    assert names == ["customer-17", "often", "pulse", "weekly"]
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE tags @> '{schedule:pulse}'") == 1
    assert place.count("SELECT count(*) FROM pipeline.schedules") == 3


def test_each_command_of_the_page_is_understood() -> None:
    """Its words and options are those of the program."""
    group = typer.main.get_command(app)
    lines = [line for block in PAGE if block.kind == "sh" for line in block.text.splitlines()]
    assert len(lines) == 8
    for line in lines:
        group.make_context("pipeline", shlex.split(line)[1:], resilient_parsing=False).close()
