"""docs/state-machine.md is the code's table, drawn."""

from __future__ import annotations

import re

from pipeline.declare.states import NEXT, Step
from tests.architecture.house import ROOT

PAGE = (ROOT / "docs/state-machine.md").read_text()


def test_the_chart_is_the_codes_table() -> None:
    """Arrow for arrow; the way in and the ways out are the chart's own."""
    [chart] = re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL)
    drawn = re.findall(r"^ *(\w+) --> (\w+): (\w+)$", chart, re.MULTILINE)
    assert len(drawn) == len(set(drawn))
    assert {(before, step): after for before, after, step in drawn} == {
        (before.value, step.value): after.value for (before, step), after in NEXT.items()
    }


def test_the_table_has_a_row_for_every_step_and_names_sql_functions_that_exist() -> None:
    """Submit comes first, though it is no step of an existing job."""
    rows = re.findall(r"^\| (\w+) \| (.*?) \|", PAGE, re.MULTILINE)
    assert [name for name, _ in rows if name != "step"] == ["submit", *(step.value for step in Step)]
    sql = "\n".join(path.read_text() for path in (ROOT / "pipeline/store/functions").glob("*/*.sql"))
    named = {name for _, functions in rows for name in re.findall(r"`([\w.]+)`", functions)}
    assert len(named) > 8
    for function in named:
        assert f"FUNCTION {function}(" in sql, f"{function} is in the table and not in the SQL files"


def test_postgresql_lets_through_the_same_steps_and_no_others() -> None:
    """Those that change the status; a trigger sees every change."""
    sql = (ROOT / "pipeline/store/functions/transitions/leave.sql").read_text()
    [array] = re.findall(r"<> ALL \(ARRAY\[(.*?)\]\)", sql, re.DOTALL)
    assert sorted(re.findall(r"'(\w+ \w+)'", array)) == sorted(
        {f"{before} {after}" for (before, _), after in NEXT.items() if before != after}
    )
