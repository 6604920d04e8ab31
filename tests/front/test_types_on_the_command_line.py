"""``pipeline submit`` with a typed workflow, and ``pipeline workflows``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest
from typer.testing import CliRunner

from pipeline.declare.errors import BadInput
from pipeline.front.cli.main import app
from tests.place import ROOT, Place

Say = Callable[..., str]


@pytest.fixture
def say(place: Place, shop: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Say:
    """Run a command on a wide terminal and return what it prints."""
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *words: CliRunner().invoke(app, words, catch_exceptions=False).stdout


def stored(place: Place, said: str) -> dict[str, Any]:
    body: dict[str, Any] = place.job(UUID(said.strip()))["body"]
    return body


def row(shown: str, *first: str) -> list[str]:
    """The cells of the line of a table that begins with these."""
    lines = [[cell.strip() for cell in line.strip("│").split("│")] for line in shown.splitlines()]
    [found] = [cells for cells in lines if cells[: len(first)] == list(first)]
    return found


@pytest.mark.parametrize("words", [("shop-orders", "--help"), ("--help", "shop-orders")])
def test_the_help_shows_the_fields_of_a_typed_body(say: Say, words: tuple[str, ...]) -> None:
    """Their names, types, defaults, whether they are required, and what they mean; after the usual help."""
    shown = say("submit", *words)
    assert shown.index("Usage: ") < shown.index("--priority") < shown.index("The body of shop-orders")
    assert row(shown, "order") == ["order", "integer", "yes", "", "Its number in the shop."]
    assert row(shown, "speed") == ["speed", '"slow" | "quick"', "", '"slow"', ""]
    assert row(shown, "lines")[:4] == ["lines", "list of object", "", "[]"]


def test_the_help_of_an_untyped_or_no_workflow_is_the_usual_one(say: Say) -> None:
    assert "The body of single is a JSON object; its fields are not declared." in say("submit", "single", "--help")
    assert "The body of" not in say("submit", "--help") + say("submit", "no-such-workflow", "--help")


def test_a_body_may_be_written_as_words(place: Place, say: Say) -> None:
    """Values are JSON where they are JSON; text where they are not, and where the type says that they are."""
    said = say("submit", "shop-orders", "order=17", "note=5", "gift=true", 'lines=[{"sku": "a=b"}]', "price=1.50")
    body = stored(place, said)
    assert (body["order"], body["note"], body["gift"]) == (17, "5", True)
    assert (body["lines"], body["price"]) == ([{"sku": "a=b", "count": 1}], "1.50")
    untyped = stored(place, say("submit", "single", "n=1", "note=two words", "size=NaN", "none="))
    assert untyped == {"n": 1, "note": "two words", "size": "NaN", "none": ""}
    assert stored(place, say("submit", "single", '{"n": 1}')) == {"n": 1}
    assert stored(place, say("submit", "single")) == {}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["shop-orders"], "the body does not fit workflow shop-orders: order: Field required"),
        (["shop-orders", "order=x"], "order: Input should be a valid integer"),
        (["shop-orders", '{"order": 1, "lines": [{}]}'], "lines.0.sku: Field required"),
        (["single", "a=1", "b"], "one JSON object, or words such as order=17 note=quick, not 'a=1 b'"),
        (["single", "[1]"], "must be a JSON object"),
        (["single", "{"], "is not JSON"),
    ],
)
def test_a_wrong_body_is_refused_with_the_field_and_nothing_is_stored(
    place: Place, say: Say, words: list[str], told: str
) -> None:
    with pytest.raises(BadInput) as error:
        say("submit", *words)
    assert told in str(error.value)
    assert place.count("SELECT count(*) FROM pipeline.jobs") == 0


def test_the_exit_code_of_a_wrong_body_is_that_of_other_wrong_input(place: Place, shop: ModuleType) -> None:
    """One line on standard error."""
    ran = subprocess.run(
        [sys.executable, "-m", "pipeline.front.cli.main", "submit", "shop-orders", "order=0"],
        cwd=ROOT,
        env={**os.environ, **place.environment(), "PIPELINE_WORKFLOWS": "tests.front.shop"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.strip().endswith("order: Input should be greater than or equal to 1")


def test_results_of_any_kind_are_shown(place: Place, say: Say) -> None:
    """``pipeline status``, for people and for scripts."""
    job = say("submit", "shop-orders", "order=1").strip()
    place.worker(threads=1, PIPELINE_WORKFLOWS="tests.front.shop")
    place.finished(UUID(job))
    result = {"count-lines": 0, "name-lines": ["none of 0"]}
    assert json.loads(say("status", job, "--json"))["job"]["result"] == result
    shown = say("status", job)
    assert '"count-lines": 0' in shown and '"none of 0"' in shown


def test_workflows_are_listed_and_where_this_code_differs(place: Place, say: Say) -> None:
    """PostgreSQL's options are in force."""
    agreed = json.loads(say("workflows", "--json"))
    assert agreed["differences"] == []
    chains = {one["name"]: [phase["phase"] for phase in one["phases"]] for one in agreed["workflows"]}
    assert chains["shop-orders"] == ["count-lines", "name-lines"] and "single" in chains
    place.db.execute("UPDATE pipeline.phases SET pool = 9, declared_pool = 9 WHERE queue = 'shop-orders.name-lines'")
    place.db.execute("UPDATE pipeline.phases SET position = 0 WHERE workflow = 'single'")
    shown = say("workflows")
    assert row(shown, "shop-orders", "name-lines")[2] == "9"
    assert "shop-orders.name-lines: pool is 9 in PostgreSQL and 4 in this code" in shown
    assert "single.act: chain is unknown in PostgreSQL and act in this code" in shown
    assert "pipeline migrate" in shown
    assert {one["option"] for one in json.loads(say("workflows", "--json"))["differences"]} == {"pool", "chain"}
