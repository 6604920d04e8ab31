"""docs/howto/limits.md, as it stands: what it declares is in force, and each command and statement does what it says."""

from __future__ import annotations

import json
import shlex

import pytest
from typer.testing import CliRunner

from pipeline import BadInput
from pipeline.declare import registry
from pipeline.declare.registry import workflows
from pipeline.front.cli.main import app
from pipeline.store import database
from pipeline.store.register import differences, register
from tests.docs.blocks import blocks
from tests.place import ROOT, Place

PAGE = blocks(ROOT / "docs/howto/limits.md")


@pytest.fixture
def declared(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's modules, in this process and in PostgreSQL."""
    others = {name: workflow for name, workflow in workflows().items() if name not in ("offers", "prices")}
    monkeypatch.setattr(registry, "_workflows", others)
    for module in (block.text for block in PAGE if block.kind == "python"):
        exec(compile(module, "page.py", "exec"), {"__name__": "page"})
    with database.engine().begin() as connection:
        register(connection, [workflows()["offers"], workflows()["prices"]], 300.0)


def test_what_the_page_declares_is_in_force(place: Place, declared: None) -> None:
    """And differs from what another version declares, until that is migrated."""
    phases = "SELECT phase, rate_limit, breaker FROM pipeline.phases WHERE workflow = 'offers' ORDER BY position"
    assert [tuple(row.values()) for row in place.rows(phases)] == [
        ("look-up", "catalogue", None),
        ("ask-shop", "shop:{shop}", "shop:{shop}"),
    ]
    rates = (
        "SELECT name, rate, burst FROM pipeline.rate_limits WHERE name IN ('catalogue', 'shop:{shop}') ORDER BY name"
    )
    assert [tuple(row.values()) for row in place.rows(rates)] == [("catalogue", 5, 10), ("shop:{shop}", 1, 1)]
    offers = workflows()["offers"]
    with database.engine().begin() as connection:
        assert differences(connection, [offers], 300.0) == []
        place.db.execute("SELECT pipeline.declare_rate_limit('catalogue', 4, 10)")
        place.db.execute("UPDATE pipeline.phases SET breaker = NULL WHERE phase = 'ask-shop'")
        found = {one.option: (one.database, one.code) for one in differences(connection, [offers], 300.0)}
    assert found == {
        "limit catalogue": ("4/s, at most 10 at once", "5/s, at most 10 at once"),
        "breaker": (None, "shop:{shop}"),
    }


def test_each_statement_of_the_page_runs(place: Place, declared: None) -> None:
    [script] = [block.text for block in PAGE if block.kind == "sql"]
    for statement in script.strip().splitlines():
        assert place.rows(statement)


def test_each_command_of_the_page_says_what_it_did(place: Place, declared: None) -> None:
    """The audit has who did what; a rate that is none, and a limit that nobody has, are refused."""
    [script] = [block.text for block in PAGE if block.kind == "sh"]
    said = []
    for line in script.strip().splitlines():
        ran = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
        assert ran.exit_code == 0, ran.output
        said.append(ran.output)
    assert "catalogue" in said[0] and "5/s" in said[0]
    assert said[1:] == [
        "rate of catalogue: 2/s\n",
        "rate of catalogue: as declared\n",
        "paused shop:north; to end it: pipeline limits resume shop:north\n",
        "resumed shop:north\n",
    ]
    listed = json.loads(CliRunner().invoke(app, ["limits", "list", "--json"]).output)
    assert {(one["name"], one["rate"], one["rate_is_set"]) for one in listed} >= {("catalogue", 5.0, False)}
    assert place.count("SELECT count(*) FROM pipeline.audit WHERE action LIKE '%%limit'") == 4
    for wrong, why in ((["set", "catalogue", "fast"], "is not a rate"), (["set", "gone", "declared"], "no limit gone")):
        ran = CliRunner().invoke(app, ["limits", *wrong])
        assert isinstance(ran.exception, BadInput) and why in str(ran.exception)
