"""SQL is written in pipeline/store alone; everybody else calls it by name, with types."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.house import files, text

ROOM = ("pipeline", "store")
STATEMENT = re.compile(
    r"""^\s*(SELECT|LISTEN|UNLISTEN|NOTIFY|BEGIN|COMMIT|ROLLBACK|LOCK\s+TABLE|SET\s+(LOCAL|SESSION)|TRUNCATE|CALL)\b
    | \bSELECT\b.*\bFROM\b | \bINSERT\s+INTO\b | \bUPDATE\b.*\bSET\b | \bDELETE\s+FROM\b | \bSET\s+LOCAL\b
    | \bFROM\s+pipeline\.\w+
    | \bpipeline\.\w+\s*\(\s*(:\w|%s|%\()""",
    re.VERBOSE | re.DOTALL,
)

ALLOWED = {
    "pipeline/dev/services/postgres.py": "asks the private server that it has just started, before there is a schema",
}


def test_no_statement_is_written_outside_of_the_store() -> None:
    """A statement in another room has no types, and nobody finds it when the tables change."""
    guilty = {str(path): found for path in _outside() if (found := list(_statements(text(path))))}
    assert guilty.keys() <= ALLOWED.keys(), f"move these into pipeline/store/gateway: {guilty}"


def test_nobody_else_makes_a_statement_of_a_string() -> None:
    """SQLAlchemy's ``text`` is a door of the store's only, however the string came about."""
    guilty = [str(path) for path in _outside() if _imports_text(ast.parse(text(path)))]
    assert not guilty


def test_the_list_names_no_file_that_has_no_statement() -> None:
    """A reason that is no longer needed goes."""
    assert all(any(_statements(text(Path(name)))) for name in ALLOWED)


@pytest.mark.parametrize(
    "code",
    [
        'X = "SELECT 1"',
        'X = f"SELECT {function}"',
        'call("pipeline.cancel(:id, :reason)")',
        'X = """\n    WITH a AS (SELECT 1 FROM b) TABLE a"""',
        'X = "UPDATE pipeline.workers SET stopped_at = now()"',
        'X = "LISTEN pipeline_relay"',
        "X = \"SET LOCAL lock_timeout = '1s'\"",
    ],
)
def test_a_statement_is_recognised(code: str) -> None:
    """Also a part of one that is put together."""
    assert list(_statements(code))


@pytest.mark.parametrize(
    "code",
    ['"""SELECT is explained here, FROM the beginning."""', 'X = "select a job from the list"', "LISTENERS = 32"],
)
def test_prose_is_not_a_statement(code: str) -> None:
    """Docstrings may speak of SQL."""
    assert not list(_statements(code))


def _outside() -> list[Path]:
    return [path for path in files(".py") if path.parts[0] == "pipeline" and path.parts[:2] != ROOM]


def _statements(code: str) -> Iterator[str]:
    tree = ast.parse(code)
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in docstrings or not isinstance(node.value, str):
            continue
        if STATEMENT.search(node.value):
            yield f"line {node.lineno}: {node.value.strip()[:60]}"


def _imports_text(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and (node.module or "").split(".")[0] == "sqlalchemy"
        and any(alias.name == "text" for alias in node.names)
        for node in ast.walk(tree)
    )
